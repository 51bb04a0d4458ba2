# redis-rb: limits, a lease and time-outs.
#
#     limits.rb [URL [PROTOCOL [SILENT_URL]]]
#
# Nobody answers at SILENT_URL.

require 'redis'
require 'securerandom'

OPEN = 200 # without an answer: let it pass
CLOSED = 503 # or turn it away
WAIT = 2000 # how long a caller may wait for a lease, in ms

def connect(url, protocol, read_timeout = 0.08)
  # No second attempts: the lost call may have been counted.
  patience = { connect_timeout: 0.08, read_timeout: read_timeout, write_timeout: 0.08, reconnect_attempts: 0 }
  patience[:protocol] = protocol.to_i if Redis::VERSION.to_i >= 5 # redis-rb 4 knows RESP2 only
  Redis.new(url: url, **patience)
end

def headers(name, window, reply)
  limited, limit, remaining, retry_after, reset_after = reply
  # If nothing remains: until the next request fits. A period admits as many as the limit.
  reset_after -= (limit - 1) * window * 1000 / limit if remaining.zero?
  seconds = ((limited == 1 ? retry_after : reset_after) / 1000r).ceil
  fields = {
    'RateLimit-Policy' => %("#{name}";q=#{limit};w=#{window}),
    'RateLimit' => %("#{name}";r=#{remaining};t=#{seconds})
  }
  limited == 1 && retry_after >= 0 ? fields.merge('Retry-After' => seconds.to_s) : fields
end

class Limits
  attr_reader :unanswered # set an alert on it

  def initialize(redis, waiting = nil)
    @redis = redis
    @waiting = waiting # for a call that waits in the server: a longer time-out, and a connection of its own
    @unanswered = 0
  end

  # The status and the headers for a request: three a minute, and all three may come at once.
  def check(user, without_answer: OPEN)
    reply = @redis.call('RL.GCRA', "user:#{user}", 2, 3, '1m')
    [reply[0] == 1 ? 429 : 200, headers('user', 60, reply)]
  rescue Redis::BaseError
    @unanswered += 1
    [without_answer, {}]
  end

  # Two a minute and 100 a day: the answer of both together, and of each.
  def plan(user)
    limits = ['LIMIT', 'SLIDINGWINDOW', 2, '1m', 'LIMIT', 'SLIDINGWINDOW', 100, '1d']
    @redis.call('RL.MULTI', 1, "plan:#{user}", *limits)
  end

  # Works if there is room, for which it waits up to so many ms, and says whether. No answer is an error: then the work is
  # not begun.
  def lease(key, capacity, ttl, wait = 0)
    id = SecureRandom.uuid
    redis, block = wait.zero? ? [@redis, []] : [@waiting, ['BLOCK', "#{wait}ms"]]
    limited, = redis.call('RL.CONCURRENT', key, capacity, "#{ttl}ms", id, *block)
    yield if limited == 0
    limited == 0
  ensure
    begin
      @redis.call('RL.RELEASE', key, id)
    rescue Redis::BaseError
      # It ends by itself.
    end
  end
end

def assert(right, *got)
  raise "got #{got}" unless right
end

url, protocol, silent = ARGV
protocol ||= '3'
url ||= 'redis://127.0.0.1:6379'
limits = Limits.new(connect(url, protocol), connect(url, protocol, WAIT / 1000.0 + 1))
user = SecureRandom.uuid # fresh keys for each run

answers = Array.new(4) { limits.check(user) }
assert(answers.map(&:first) == [200, 200, 200, 429], answers)
assert(answers.map { |_, fields| fields['RateLimit'][/r=\d+/] } == %w[r=2 r=1 r=0 r=0], answers)
assert(answers.map { |_, fields| (1..20).cover?(fields['Retry-After'].to_i) } == [false, false, false, true], answers)
puts "1 check: #{answers.last}"

second = nil
first = limits.lease("db:#{user}", 1, 30_000) { second = limits.lease("db:#{user}", 1, 30_000) { nil } }
third = limits.lease("db:#{user}", 1, 30_000) { nil }
assert([first, second, third] == [true, false, true], first, second, third)
waited = nil # the first one ends after 300 ms
limits.lease("db:#{user}", 1, 300) { waited = limits.lease("db:#{user}", 1, 30_000, WAIT) { nil } }
assert(waited, waited)
puts '2 lease: taken, refused, released, taken, waited for'

plans = Array.new(3) { limits.plan(user) }
assert(plans.map { |all, _| all[0] } == [0, 0, 1], plans)
minute, day = plans.last[1]
assert([minute[0], day[0], day[2]] == [1, 0, 98], plans)
puts '3 plan: refused by the minute, 98 left of the day'

start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
down = Limits.new(connect(silent || 'redis://127.0.0.1:1', protocol))
assert([down.check(user), down.check(user, without_answer: CLOSED)] == [[200, {}], [503, {}]])
assert(Process.clock_gettime(Process::CLOCK_MONOTONIC) - start < 1)
assert([limits.unanswered, down.unanswered] == [0, 2], limits.unanswered, down.unanswered)
puts '4 no answer: open 200, closed 503, 2 counted'
