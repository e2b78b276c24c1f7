"""Operations in the admin: started, confirmed, watched, cancelled."""
