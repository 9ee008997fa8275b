<?php echo file_get_contents("http://127.0.0.1:BACKEND/");
