/** What an application is told of: decisions, errors, and metrics by OpenTelemetry. And a time-out of one call. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader, AggregationTemporality } from '@opentelemetry/sdk-metrics'
import { Redis } from 'ioredis'
import { RateLimiter, type Asked, type CallError, type Decision, type RateLimiterOptions, type Unavailable } from 'redis-ratelimit'
import { instrument } from 'redis-ratelimit/opentelemetry'
import { startServer, type Server } from './servers.js'

describe('hooks', () => {
  let server: Server
  let redis: Redis
  before(async () => {
    server = await startServer()
    redis = new Redis(server.port)
  })
  after(async () => {
    redis?.disconnect()
    await server?.stop()
  })

  function made(options: RateLimiterOptions): { limiter: RateLimiter; lines: string[] } {
    const lines: string[] = []
    return { limiter: new RateLimiter(redis, { timeoutMs: 3000, prefix: 'p:', logger: (line) => lines.push(line), ...options }), lines }
  }

  test('each decision is told with its command, its key and its time, from memory too', async () => {
    const told: [Decision, Asked][] = []
    const { limiter } = made({ cache: {}, onDecision: (...all) => told.push(all) })
    const decisions = [await limiter.limit('told', '1/h'), await limiter.limit('told', '1/h'), await limiter.limit('told', '1/h')]
    await limiter.peek('told', '1/h')
    assert.deepEqual(told.map(([decision]) => decision), decisions)
    assert.deepEqual(told.map(([, { command, key }]) => [command, key]), Array(3).fill(['RL.GCRA', 'told']))
    const [first, , remembered] = told.map(([, { ms }]) => ms)
    assert.ok(first! > 0 && remembered === 0)
    assert.equal(limiter.counters.cached, 1)
    await limiter.close()
  })

  test('errors are told, also those of calls that are let through', async () => {
    const errors: (Unavailable | CallError)[] = []
    const decisions: Decision[] = []
    const { limiter } = made({ onError: (error) => errors.push(error), onDecision: (decision) => decisions.push(decision) })
    await redis.set('p:text', 'x')
    await assert.rejects(limiter.limit('text', '1/h'), /WRONGTYPE/)
    server.process.kill('SIGSTOP')
    const began = performance.now()
    const decision = await limiter.limit('late', '1/h', { timeoutMs: 60 })
    const ms = performance.now() - began
    server.process.kill('SIGCONT')
    assert.ok(ms >= 59 && ms < 2000, `${ms} ms`)
    assert.deepEqual([decision.allowed, decision.answered], [true, false])
    assert.deepEqual(errors.map(({ name }) => name), ['CallError', 'Unavailable'])
    assert.match(errors[1]!.message, /no reply within 60 ms/)
    assert.deepEqual(decisions, [decision])
    await limiter.close()
  })

  test('a hook that throws changes no decision', async () => {
    const { limiter, lines } = made({
      onDecision() {
        throw new Error('no room')
      },
    })
    assert.equal((await limiter.limit('thrown', '1/h')).allowed, true)
    assert.deepEqual(lines, ['redis-ratelimit: hook failed: no room'])
    await limiter.close()
    assert.throws(() => made({ onError: 5 as never }), /onError must be a function, not 5/)
  })

  test('OpenTelemetry has the counters and the times of decisions, until it is ended', async (t) => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    t.after(() => provider.shutdown())
    const { limiter } = made({})
    t.after(() => limiter.close())
    const end = instrument(limiter, { meter: provider.getMeter('test'), attributes: { limiter: 'api' } })
    for (let i = 0; i < 3; i += 1) await limiter.limit('measured', '2/h')
    await provider.forceFlush()
    const [scope] = exporter.getMetrics().at(-1)!.scopeMetrics
    const metrics = new Map(scope!.metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]))
    const valueOf = (name: string) => metrics.get(`redis_ratelimit.${name}`)!.map(({ value, attributes }) => [value, attributes])
    assert.deepEqual(valueOf('allowed'), [[2, { limiter: 'api' }]])
    assert.deepEqual(valueOf('failed_open'), [[0, { limiter: 'api' }]])
    assert.equal(metrics.size, Object.keys(limiter.counters).length + 1)
    const times = metrics.get('redis_ratelimit.decision.duration')!.map(({ attributes, value }) => [attributes, (value as { count: number }).count])
    assert.deepEqual(times, [
      [{ limiter: 'api', command: 'RL.GCRA', outcome: 'allowed' }, 2],
      [{ limiter: 'api', command: 'RL.GCRA', outcome: 'refused' }, 1],
    ])
    end()
    exporter.reset()
    await limiter.limit('measured', '2/h')
    await provider.forceFlush()
    const left = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((one) => one.metrics))
    assert.equal(limiter.counters.refused, 2)
    assert.deepEqual(left.filter(({ descriptor }) => descriptor.name === 'redis_ratelimit.refused').flatMap(({ dataPoints }) => dataPoints.map(({ value }) => value)).filter((value) => value === 2), [])
    assert.throws(() => instrument(limiter, { metre: 1 } as never), /there is no option 'metre'/)
  })
})
