require "net/http"
class Job
  include Sidekiq::Worker
  def perform
    Sidekiq.redis { |redis| redis.rpush("answer", Net::HTTP.get("127.0.0.1", "/", BACKEND)) }
  end
end
