import { foreign } from './foreign.js'

/**
 * Variables with these beginnings are ours. One that no table knows stops the start: a misspelt limit must not silently
 * be no limit.
 */
const families = new RegExp(
  `^(${[
    'SLUICE',
    'GATEWAY',
    'EDGE',
    'DEVNET',
    'HTTPSIG',
    'OBSERVER',
    'CACHE',
    'CONTIGUOUS',
    'CHUNK',
    'CHUNKS',
    'TRUSTED',
    'ARNS',
    'AR_IO',
    'ANS104',
    'ARWEAVE',
    'RATE_LIMITER',
    'X_402',
    'CDP_API',
    'APEX',
    'STREAM',
    'ENABLE_RATE',
    'ENABLE_X_402',
    'ON_DEMAND',
    'BACKGROUND',
    'INTERFACE',
    'UPLOAD',
    'PAYMENT',
    'SERVICES',
    'PRIVATE_ROUTE',
    'STRIPE',
    'ADMIN_API',
    'SHUTDOWN',
    'WEBHOOK',
    'FETCHES',
    'SKIP_FORWARDING',
    'CDB64',
    'ROOT_TX',
    'NEGATIVE_CACHE',
    'SANDBOX',
    'MANIFEST',
    'CONSOLE',
    'CLUSTER',
    'INDEX',
    'PEER_GATEWAYS',
    'ENABLE_BACKGROUND',
    'MAX_VERIFICATION',
    'VERIFICATION',
    'GRAPHQL',
    'TLS',
    'ADMIN_ON',
    'HTTP_REDIRECT',
  ].join('|')})_`,
)

/** Levenshtein distance of at most 2: nearer than that is a slip of the finger. */
function near(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 2) return false
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + same))
    }
    row = next
  }
  return row[other.length]! <= 2
}

/**
 * What is wrong with names of the environment, a line for each: one that is nearly the name of a setting, and one that begins
 * like ours. `known`: the names of all settings.
 */
export function unknownNames(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || foreign.has(name) || environment[name] === '') return []
    const meant = known.find((one) => name.length > 5 && near(name, one))
    if (meant !== undefined) return [`${name}: no such setting; did you mean ${meant}?`]
    return families.test(name) ? [`${name}: no such setting`] : []
  })
}
