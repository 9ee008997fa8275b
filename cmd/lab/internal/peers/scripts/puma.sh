# needs puma
cat >config.ru <<'END'
think = proc { |env| env["QUERY_STRING"][/think=(\d+)ms/, 1].to_i / 1000.0 }
run proc { |env| sleep think.(env); [200, { "Content-Length" => "6" }, ["served"]] }
END
exec puma --quiet --threads=32:32 --bind=tcp://0.0.0.0:8080 config.ru
