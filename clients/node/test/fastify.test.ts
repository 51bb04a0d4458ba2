/** What only the plugin for Fastify does. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fastify, { type FastifyRequest } from 'fastify'
import { Redis } from 'ioredis'
import { RateLimiter } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/fastify'
import { startServer } from './servers.js'

describe('the plugin for Fastify', () => {
  test('can limit by what the body says, in a later hook, for one part of an application', async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const limiter = new RateLimiter(new Redis(server.port, { lazyConnect: true }), { timeoutMs: 3000 })
    t.after(() => limiter.close())
    const app = fastify()
    t.after(() => app.close())
    const cost = (request: FastifyRequest) => (request.body as string[]).length
    await app.register(async (part) => {
      await part.register(ratelimit, { limiter, hook: 'preHandler', rules: [{ name: 'items', key: (request) => request.ip, limit: '10/h', cost }] })
      part.post('/items', (request) => request.spent)
    })
    app.get('/free', () => 'ok')
    const post = (items: string[]) => app.inject({ method: 'POST', url: '/items', payload: items })
    assert.match(String((await post(['a', 'b', 'c'])).headers['ratelimit']), /^"items";r=7;/)
    assert.equal((await post(Array(8).fill('a'))).statusCode, 429)
    assert.equal((await app.inject('/free')).headers['ratelimit'], undefined)
  })

  test('refuses options that it does not know, but not those of register itself', async (t) => {
    const limiter = new RateLimiter(new Redis(1, { lazyConnect: true }), { timeoutMs: 50, connectTimeoutMs: 50, logger: () => undefined })
    t.after(() => limiter.close())
    const rules = [{ name: 'all', key: (request: FastifyRequest) => request.ip, limit: '1/h' }]
    const register = async (options: object) => {
      const app = fastify()
      t.after(() => app.close())
      await app.register(ratelimit, { limiter, rules, ...options })
    }
    await register({ prefix: '/v1', logLevel: 'warn' })
    await assert.rejects(register({ hok: 'preHandler' }), { name: 'ConfigurationError', message: /^there is no option 'hok'/ })
    await assert.rejects(register({ hook: 'onSend' }), { name: 'ConfigurationError', message: /^hook must be one of .*, not 'onSend'$/ })
  })
})
