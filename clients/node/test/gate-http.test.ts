/** A gate in front of a server of `node:http2`. Programs of the README and of `node:http` are tried with the pages. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants, createServer, type Http2ServerRequest } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Concurrent } from 'redis-ratelimit'
import { endWith, Gate } from 'redis-ratelimit/gate'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until } from './servers.js'

test('a lease ends with its stream of HTTP/2, which may be reset while the rules are asked', async (t) => {
  const redis = await startServer()
  t.after(() => redis.stop())
  const { limiter } = await limiterOn(t, KINDS[0]!, redis.port)
  let reset = () => {}
  const key = async ({ stream, url }: Http2ServerRequest) => {
    if (url === '/reset') {
      reset()
      await once(stream, 'close')
    }
    return 'ann'
  }
  const gate = new Gate({ limiter, rules: [{ name: 'streams', key, limit: new Concurrent(1, '1m') }] })
  await limiter.ready()
  const goesOn: boolean[] = []
  const server = createServer(async (request, response) => {
    const pass = await gate.enter(request)
    goesOn.push(endWith(response, pass))
    if (goesOn.at(-1)) response.writeHead(pass.refusal?.status ?? 200, pass.headers).end()
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.after(() => client.destroy())
  const isLeft = async () => (await redis.cli('EXISTS', 'streams:ann')).trim() === '0'

  const answered = client.request({ ':path': '/' })
  const [headers] = await once(answered, 'response')
  answered.resume()
  assert.deepEqual([headers[':status'], headers['ratelimit']], [200, '"streams";r=0'])
  await until(isLeft, 'a release')
  const left = client.request({ ':path': '/reset' })
  reset = () => left.close(constants.NGHTTP2_CANCEL)
  await until(() => goesOn.length === 2, 'a decision')
  assert.deepEqual(goesOn, [true, false])
  await until(isLeft, 'a release after the reset')
})
