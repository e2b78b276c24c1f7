"""Operations in the admin: asked for, confirmed, watched, called off."""
