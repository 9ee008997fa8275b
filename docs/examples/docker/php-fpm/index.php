<?php
if ($_SERVER['SCRIPT_NAME'] === '/slow') {
	sleep(4);
}
echo "ok\n";
