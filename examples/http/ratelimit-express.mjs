// Rate limits, leases and load shedding in front of an Express application, with ioredis.
//
// All policies of a request are decided by one RL.MULTI: if one refuses, none is charged and no lease is taken.
//
//   policy   { name, key, limiter, window }
//            key(req): whose limit it is, or undefined if the policy is not for this request
//            limiter: as behind LIMIT in RL.MULTI, ['SLIDINGLOG', 100, '10s'] or ['CONCURRENT', 5, '30s']
//            window: the w of RateLimit-Policy, in seconds
//   shed     { key, utilization, tier, tiers, options, retryAfter }
//            utilization(): how busy the workers are, from 0 to 1
//            tier(req): the request's tier, 1 going first, or undefined for what is never shed

import { randomUUID } from 'node:crypto'

const PROBLEM = 'https://iana.org/assignments/http-problem-types#'
const seconds = (ms) => Math.ceil(ms / 1000)
const isLease = ({ limiter }) => limiter[0] === 'CONCURRENT'

// RateLimit-Policy and RateLimit. A 429 names the policies that refuse: `t` may not be later than Retry-After.
// A lease has no `t`: it comes free when somebody is done, and nobody knows when.
function fields(policies, replies, limited) {
  const offered = policies.map((policy, i) => {
    const unit = isLease(policy) ? ';qu="concurrent-requests"' : ''
    return `"${policy.name}";q=${replies[i][1]}${unit}${policy.window ? `;w=${policy.window}` : ''}`
  })
  const left = policies.map((policy, i) => {
    const [refused, , remaining, retry, reset] = replies[i]
    const wait = refused ? retry : reset
    return `"${policy.name}";r=${remaining}${isLease(policy) || wait < 0 ? '' : `;t=${seconds(wait)}`}`
  })
  return {
    'RateLimit-Policy': offered.join(', '),
    RateLimit: left.filter((_, i) => replies[i][0] || !limited).join(', '),
  }
}

function refuse(res, status, problem, violated, wait) {
  if (wait >= 0) res.set('Retry-After', String(wait))
  res.status(status).type('application/problem+json')
  res.send(JSON.stringify({ type: PROBLEM + problem, status, 'violated-policies': violated }))
}

export function ratelimit({ redis, policies, shed, timeout = 100, fail = 'open', log = console.warn }) {
  function within(promise) {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer in ${timeout} ms`)), timeout)
    })
    return Promise.race([promise, late]).finally(() => clearTimeout(timer))
  }

  async function sheds(req) {
    const tier = shed?.tier(req)
    if (!tier) return false
    const words = [shed.key, shed.utilization(), ...(shed.options ?? []), 'TIER', tier, 'OF', shed.tiers]
    return (await redis.call('RL.SHED', ...words))[0] === 1
  }

  function decide(asked, request) {
    const limits = asked.flatMap(({ policy }, i) => {
      return ['LIMIT', ...policy.limiter, ...(isLease(policy) ? [request] : []), 'ON', i + 1]
    })
    return redis.call('RL.MULTI', asked.length, ...asked.map(({ key }) => key), ...limits)
  }

  return async function (req, res, next) {
    const request = randomUUID()
    const named = policies.map((policy) => ({ policy, whose: policy.key(req) }))
    const asked = named.flatMap(({ policy, whose }) => {
      return whose === undefined ? [] : [{ policy, key: `${policy.name}:${whose}` }]
    })
    const applied = asked.map(({ policy }) => policy)
    try {
      if (await within(sheds(req))) {
        return refuse(res, 503, 'temporary-reduced-capacity', [], shed.retryAfter ?? 5)
      }
      if (asked.length > 0) {
        const [[limited], replies] = await within(decide(asked, request))
        res.set(fields(applied, replies, limited))
        if (limited) {
          const refusing = applied.filter((_, i) => replies[i][0])
          const waits = replies.filter(([refused]) => refused).map((reply) => reply[3])
          // Infinity, of a limit that can never admit this, is not sent.
          const wait = Math.max(...waits.map((ms, i) => (isLease(refusing[i]) ? 1 : ms < 0 ? Infinity : seconds(ms))))
          const names = refusing.map(({ name }) => name)
          return refuse(res, 429, 'quota-exceeded', names, Number.isFinite(wait) ? wait : undefined)
        }
        const leases = asked.filter(({ policy }) => isLease(policy))
        const release = () => {
          for (const { key } of leases) {
            within(redis.call('RL.RELEASE', key, request)).catch((e) => log(`not released, ends by itself: ${e.message}`))
          }
        }
        // At the response's end, and also when the client has gone, perhaps while Redis was asked.
        if (res.destroyed) return release()
        res.once('close', release)
      }
    } catch (error) {
      log(`fail ${fail}: ${error.message}`)
      if (fail !== 'open') return refuse(res, 503, 'temporary-reduced-capacity', [], 1)
    }
    next()
  }
}
