"""What runs in a child: orders become attempts, and attempts run the bodies of the project."""
