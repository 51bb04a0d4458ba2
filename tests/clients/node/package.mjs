// Sends calls through the package redis-ratelimit to a cluster, one node of which listens at the port in argv[4].
// argv[2] is the library. argv[3] is `commands`, on its client, `pipelined`, the same with ioredis' automatic pipelines,
// or `limiter`, on connections of the limiter's own. Each line of the input is a key and a call. The call is sent argv[5]
// times, each time with another number for #. Then a line is printed.

import { createInterface } from 'node:readline'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { Commands, Gcra, RateLimiter } from 'redis-ratelimit'

const [library, way, port, calls] = process.argv.slice(2)

const libraries = {
  ioredis: async () => new Cluster([{ host: '127.0.0.1', port: Number(port) }], { enableAutoPipelining: way === 'pipelined' }),
  redis: async () => createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] }).connect(),
}

// The call of a line, by the method of its command.
function send(commands, key, command, ...words) {
  switch (command) {
    case 'TYPE':
      return commands.peek(key, new Gcra(999, 1000, '1s'))
    case 'RL.GCRA':
      return commands.gcra(words[0], Number(words[1]), Number(words[2]), words[3])
    case 'RL.MULTI':
      return commands.multi([words[1]], [new Gcra(Number(words[4]), Number(words[5]), words[6])])
    case 'RL.ASK':
      return commands.ask(words[0], words[1], { moreKeys: words.slice(3) })
    case 'RL.ASKPEEK':
      return commands.askPeek(words[0], words[1])
  }
}

const redis = await libraries[library]()
const limiter = way === 'limiter' ? new RateLimiter(redis, { timeoutMs: 5000 }) : undefined
const commands = limiter?.commands ?? new Commands(redis)
for await (const line of createInterface({ input: process.stdin })) {
  const numbers = Array.from({ length: Number(calls) }, (_, number) => number)
  const one = (number) => send(commands, ...line.replaceAll('#', number).split(' '))
  // Pipelines are made of calls that come at once.
  if (way === 'pipelined') await Promise.all(numbers.map(one))
  else for (const number of numbers) await one(number)
  console.log('sent')
}
limiter?.close()
await (redis.close ? redis.close() : redis.quit())
