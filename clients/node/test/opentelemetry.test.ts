/** Metrics of OpenTelemetry. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader, AggregationTemporality } from '@opentelemetry/sdk-metrics'
import { Redis } from 'ioredis'
import { RateLimiter } from 'redis-ratelimit'
import { instrument } from 'redis-ratelimit/opentelemetry'
import { startServer } from './servers.js'

test('OpenTelemetry has the counters and the times of decisions, until it is ended', async (t) => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  t.after(() => provider.shutdown())
  const server = await startServer()
  t.after(() => server.stop())
  const redis = new Redis(server.port)
  t.after(() => redis.disconnect())
  const limiter = new RateLimiter(redis, { timeoutMs: 3000 })
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
