"""Operations: one verb on many tasks in the background, requested here, served by workers."""
