// Calls CL.THROTTLE as redis-cell's users do from Node.js, through the client library named in argv[2] and its own
// way to a module's commands, on the server at the port in argv[3]. Prints how many checks passed, and of how many.

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

const [library, port] = [process.argv[2], Number(process.argv[3])]

const libraries = {
  async ioredis() {
    const redis = new Redis({ host: '127.0.0.1', port })
    return {
      throttle: (...args) => redis.call('CL.THROTTLE', ...args),
      together: async (calls) => {
        const transaction = redis.multi()
        for (const args of calls) transaction.call('CL.THROTTLE', ...args)
        return (await transaction.exec()).map(([, reply]) => reply)
      },
      quit: () => redis.quit(),
    }
  },
  async redis() {
    const throttle = {
      parseCommand(parser, key, ...numbers) {
        parser.push('CL.THROTTLE')
        parser.pushKey(key)
        for (const number of numbers) parser.push(String(number))
      },
      transformReply: undefined,
    }
    const redis = createClient({ socket: { host: '127.0.0.1', port }, RESP: 3, modules: { cl: { throttle } } })
    await redis.connect()
    return {
      throttle: (...args) => redis.cl.throttle(...args),
      together: (calls) => calls.reduce((transaction, args) => transaction.cl.throttle(...args), redis.multi()).exec(),
      quit: () => redis.close(),
    }
  },
}

let [passed, total] = [0, 0]

// Times may be less than wanted by the whole seconds that this machine stood still.
function expect(what, got, wanted) {
  const late = Math.floor((performance.now() - start) / 1000)
  const close = (number, i) => number === wanted[i] || (i > 2 && number < wanted[i] && number >= wanted[i] - late)
  const right = got.length === wanted.length && got.every(close)
  total += 1
  passed += right
  if (!right) console.error(`${library}: ${what}: got ${got}, wanted ${wanted}`)
}

const { throttle, together, quit } = await libraries[library]()
const start = performance.now()

// redis-cell's README.
expect('the first example', await throttle('user123', 15, 30, 60, 1), [0, 16, 15, -1, 2])
expect('without a quantity', await throttle('user123', 15, 30, 60), [0, 16, 14, -1, 4])
expect('the read rate', await throttle('user123-read-rate', 15, 30, 60), [0, 16, 15, -1, 2])
expect('the write rate', await throttle('user123-write-rate', 5, 10, 60), [0, 6, 5, -1, 6])

// A token a minute, three at once.
expect('request 1 of 3', await throttle('alice', 2, 60, 3600), [0, 3, 2, -1, 60])
expect('request 2 of 3', await throttle('alice', 2, 60, 3600), [0, 3, 1, -1, 120])
expect('request 3 of 3', await throttle('alice', 2, 60, 3600), [0, 3, 0, -1, 180])
expect('one too many', await throttle('alice', 2, 60, 3600), [1, 3, 0, 60, 180])
expect('two too many', await throttle('alice', 2, 60, 3600, 2), [1, 3, 0, 120, 180])
expect('a look', await throttle('alice', 2, 60, 3600, 0), [0, 3, 0, -1, 180])
expect('another key', await throttle('bob', 2, 60, 3600, 2), [0, 3, 1, -1, 120])
expect('more than is left', await throttle('bob', 2, 60, 3600, 2), [1, 3, 1, 60, 120])
expect('more than ever', await throttle('fresh', 2, 60, 3600, 4), [1, 3, 3, -1, 0])

const refused = await throttle('alice', 2, 0, 3600).then(() => 'admitted', () => 'an error')
expect('a rate of zero', [refused], ['an error'])

const many = await together(Array(4).fill(['carol', 2, 60, 3600]))
expect('a transaction', many.map(([limited]) => limited), [0, 0, 0, 1])

expect('one in two seconds', await throttle('dave', 0, 1, 2), [0, 1, 0, -1, 2])
const limited = await throttle('dave', 0, 1, 2)
expect('too early', limited, [1, 1, 0, 2, 2])
await sleep(limited[3] * 1000 + 10) // a timer may be a millisecond early
expect('after the wait', await throttle('dave', 0, 1, 2), [0, 1, 0, -1, 2])

await quit()
console.log(`${passed} of ${total}`)
process.exitCode = passed < total ? 1 : 0
