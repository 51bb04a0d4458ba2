// node-redis: limits, a lease and time-outs.
//
//     node-redis.mjs [URL [PROTOCOL [SILENT_URL]]]
//
// Nobody answers at SILENT_URL.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'redis'

const [url = 'redis://127.0.0.1:6379', protocol = '3', silent = 'redis://127.0.0.1:1'] = process.argv.slice(2)
const OPEN = 200 // without an answer: let it pass
const CLOSED = 503 // or turn it away
const WAIT = 2000 // how long a caller may wait for a lease, in ms

async function connect(url) {
  // No queue for better times: an answer now, or none.
  const redis = createClient({ url, RESP: Number(protocol), disableOfflineQueue: true, socket: { connectTimeout: 80 } })
  redis.on('error', () => {}) // the callers see it
  return Promise.race([redis.connect(), late(500)]).then(() => redis, () => redis)
}

// A command's own time-out ends when it is written to the socket: this one lasts until the answer.
function late(ms = 80) {
  return new Promise((_, reject) => setTimeout(() => reject(new Error('no answer')), ms).unref())
}

function headers(name, window, [limited, limit, remaining, retryAfter, resetAfter]) {
  const seconds = Math.ceil((limited ? retryAfter : resetAfter) / 1000)
  const fields = {
    'RateLimit-Policy': `"${name}";q=${limit};w=${window}`,
    RateLimit: `"${name}";r=${remaining};t=${seconds}`,
  }
  return limited ? { ...fields, 'Retry-After': String(seconds) } : fields
}

class Limits {
  unanswered = 0 // set an alert on it

  constructor(redis) {
    this.redis = redis
  }

  ask(...command) {
    return Promise.race([this.redis.sendCommand(command.map(String)), late()])
  }

  // The status and the headers for a request: three a minute, and all three may come at once.
  async check(user, withoutAnswer = OPEN) {
    try {
      const reply = await this.ask('RL.GCRA', `user:${user}`, 2, 3, '1m')
      return [reply[0] ? 429 : 200, headers('user', 60, reply)]
    } catch {
      this.unanswered += 1
      return [withoutAnswer, {}]
    }
  }

  // Two a minute and 100 a day: whether both admit, and the answer of each.
  async plan(user) {
    const limits = ['LIMIT', 'SLIDINGWINDOW', 2, '1m', 'LIMIT', 'SLIDINGWINDOW', 100, '1d']
    const [[limited], each] = await this.ask('RL.MULTI', 1, `plan:${user}`, ...limits)
    return [!limited, each]
  }

  // Seconds until this address may try this user's password again. A third failure within ten minutes bans.
  async banned(user, address, failures = 0) {
    const limit = [3, '10m', '10m', 'GROW', 2, 'MAX', '1d', 'COST', failures]
    const reply = await this.ask('RL.PENALTY', `ban:${user}:${address}`, ...limit)
    return Math.ceil(reply[3] / 1000)
  }

  // Whether this cost fits the user's thousand a month, by Lisbon's calendar, and what is left.
  async month(user, cost) {
    const quota = [1000, 'MONTH', 'TZ', 'Europe/Lisbon', 'COST', cost]
    const [limited, , remaining] = await this.ask('RL.CALENDAR', `month:${user}`, ...quota)
    return [!limited, remaining]
  }

  // Waits in the server for up to so many ms, on a connection of its own: it would hold up all other calls.
  async waitInLine(command, wait) {
    const waiting = await connect(url)
    try {
      return await Promise.race([waiting.sendCommand([...command, 'BLOCK', wait].map(String)), late(wait + 1000)])
    } finally {
      waiting.destroy() // also after a time-out: else the call keeps its place in the line
    }
  }

  // Works if there is room, for which it waits up to so many ms, and says whether. No answer is an error: then the work is
  // not begun.
  async withLease(key, capacity, ttl, work, wait = 0) {
    const id = randomUUID()
    const command = ['RL.CONCURRENT', key, capacity, ttl, id]
    try {
      const [limited] = await (wait ? this.waitInLine(command, wait) : this.ask(...command))
      if (!limited) await work()
      return !limited
    } finally {
      await this.ask('RL.RELEASE', key, id).catch(() => {}) // else the lease ends by itself
    }
  }
}

const limits = new Limits(await connect(url))
const user = randomUUID() // fresh keys for each run

const answers = []
for (let call = 0; call < 4; call += 1) answers.push(await limits.check(user))
assert.deepEqual(answers.map(([status]) => status), [200, 200, 200, 429])
assert.deepEqual(answers.map(([, fields]) => fields.RateLimit.split(';')[1]), ['r=2', 'r=1', 'r=0', 'r=0'])
const wait = Number(answers[3][1]['Retry-After'])
assert(wait >= 1 && wait <= 20)
console.log('1 check:', JSON.stringify(answers[3]))

const db = `db:${user}`
let second
assert(await limits.withLease(db, 1, 30000, async () => { second = await limits.withLease(db, 1, 30000, () => {}) }))
assert(second === false && await limits.withLease(db, 1, 30000, () => {}))
let waited
assert(await limits.withLease(db, 1, 30000, () => {
  waited = limits.withLease(db, 1, 30000, () => {}, WAIT)
  return sleep(200)
}))
assert(await waited)
console.log('2 lease: taken, refused, released, taken, waited for')

const plans = []
for (let call = 0; call < 3; call += 1) plans.push(await limits.plan(user))
assert.deepEqual(plans.map(([admitted]) => admitted), [true, true, false])
const [minute, day] = plans[2][1]
assert.deepEqual([minute[0], day[0], day[2]], [1, 0, 98])
console.log('3 plan: refused by the minute, 98 left of the day')

const bans = []
for (const failures of [1, 1, 0, 1]) bans.push(await limits.banned(user, '203.0.113.9', failures))
assert.deepEqual(bans.slice(0, 3), [0, 0, 0])
assert(bans[3] >= 590 && bans[3] <= 600)
assert(await limits.banned(user, '198.51.100.7') === 0 && await limits.banned(user, '203.0.113.9') > 0)
console.log('4 login: the third failure bans for ten minutes, and nobody else')

const months = []
for (const cost of [999, 2, 1]) months.push(await limits.month(user, cost))
assert.deepEqual(months, [[true, 1], [false, 1], [true, 0]])
console.log('5 month: 999 taken, 2 refused, 1 taken')

const start = performance.now()
const down = new Limits(await connect(silent))
assert.deepEqual([await down.check(user), await down.check(user, CLOSED)], [[200, {}], [503, {}]])
assert(performance.now() - start < 1000)
assert.deepEqual([limits.unanswered, down.unanswered], [0, 2])
console.log('6 no answer: open 200, closed 503, 2 counted')

limits.redis.destroy()
down.redis.destroy()
