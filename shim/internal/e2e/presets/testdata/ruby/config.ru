require "net/http"
run proc { |env| [200, {}, [Net::HTTP.get("127.0.0.1", "/", BACKEND)]] }
