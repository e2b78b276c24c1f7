"""Operations in the admin: start, confirm, watch and cancel them."""
