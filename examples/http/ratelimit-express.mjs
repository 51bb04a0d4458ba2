// Rate limits, budgets, leases and load shedding in front of an Express application, with ioredis.
//
// All policies of a request are decided by one RL.MULTI: if one refuses, none is charged and no lease is taken.
//
// A budget is a policy with an estimate, which is held before the application runs and settled after the response. The
// application writes what it spends into req.spent, under the policy's name, as it goes. If it writes nothing, the
// estimate stands.
//
//   policy   { name, key, limiter, window, estimate }
//            key(req): whose limit it is, or undefined if the policy is not for this request
//            limiter: as behind LIMIT in RL.MULTI, ['SLIDINGLOG', 100, '10s'] or ['CONCURRENT', 5, '30s']
//            window: the w of RateLimit-Policy, in seconds
//            estimate(req): of a budget, the most that the request may cost
//   shed     { key, utilization, tier, tiers, options, retryAfter }
//            utilization(): how busy the workers are, from 0 to 1
//            tier(req): the request's tier, 1 going first, or undefined for what is never shed
//   hold     after it an estimate can no longer be settled, so it is longer than the longest response

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

export function ratelimit({ redis, policies, shed, timeout = 100, fail = 'open', hold = '10m', log = console.warn }) {
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

  // RL.MULTI, or the RL.MULTISETTLE that belongs to it.
  function call(command, asked, options, request, spent) {
    const limits = asked.flatMap(({ policy, estimate }, i) => {
      const cost = estimate === undefined ? [] : ['COST', spent[policy.name] ?? estimate]
      return ['LIMIT', ...policy.limiter, ...(isLease(policy) ? [request] : []), 'ON', i + 1, ...cost]
    })
    return redis.call(command, asked.length, ...asked.map(({ key }) => key), ...options, ...limits)
  }

  return async function (req, res, next) {
    const request = randomUUID()
    const named = policies.map((policy) => ({ policy, whose: policy.key(req) }))
    const asked = named.flatMap(({ policy, whose }) => {
      const estimate = policy.estimate && whose !== undefined ? Math.max(1, policy.estimate(req)) : undefined
      return whose === undefined ? [] : [{ policy, key: `${policy.name}:${whose}`, estimate }]
    })
    const applied = asked.map(({ policy }) => policy)
    const hasBudget = applied.some(({ estimate }) => estimate)
    req.spent = {}
    const settle = () => {
      if (!hasBudget) return
      const settled = within(call('RL.MULTISETTLE', asked, [request, 'COST', 1], request, req.spent))
      settled.catch((e) => log(`not settled, the estimate stands: ${e.message}`))
    }
    try {
      if (await within(sheds(req))) {
        return refuse(res, 503, 'temporary-reduced-capacity', [], shed.retryAfter ?? 5)
      }
      if (asked.length > 0) {
        const options = hasBudget ? ['HOLD', request, hold] : []
        const [[limited], replies] = await within(call('RL.MULTI', asked, options, request, {}))
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
        const end = () => {
          for (const { key } of leases) {
            const released = within(redis.call('RL.RELEASE', key, request))
            released.catch((e) => log(`not released, ends by itself: ${e.message}`))
          }
          settle()
        }
        // The client has gone while Redis was asked: nothing is spent.
        if (res.destroyed) {
          for (const { name } of applied) req.spent[name] = 0
          return end()
        }
        // At the response's end, and also when the client hangs up.
        res.once('close', end)
      }
    } catch (error) {
      log(`fail ${fail}: ${error.message}`)
      if (fail !== 'open') return refuse(res, 503, 'temporary-reduced-capacity', [], 1)
      // The call may have been decided. If it was not, nothing is held and the settlement changes nothing.
      res.once('close', settle)
    }
    next()
  }
}
