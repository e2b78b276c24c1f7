"""Operations: one verb on many tasks, carried out in the background by any worker."""
