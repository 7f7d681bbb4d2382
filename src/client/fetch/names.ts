import { isContentId } from '../bytes.js'
import { ClientError } from '../errors.js'
import { type Finding, type Gateways, untrue } from './gateways.js'
import { responseSignature } from './http-signature.js'

/** What a name means, as so many gateways agree. */
export interface ResolvedName {
  readonly id: string
  readonly agreed: readonly string[]
}

async function askOne(
  gateways: Gateways,
  gateway: string,
  name: string,
  signal?: AbortSignal,
): Promise<string> {
  for (const prefix of ['/gateway', '/ar-io']) {
    const path = `${prefix}/resolver/${encodeURIComponent(name)}`
    const response = await gateways.get(gateway + path, {}, signal, [200, 404])
    const { status, headers } = response
    if (status === 404) {
      await response.body?.cancel()
      continue
    }
    const signature = await responseSignature({ status, headers, method: 'GET', path })
    if (signature === false) throw untrue(`${gateway}: the signature over ${name} does not hold`)
    const { txId } = await gateways.json(response, signal)
    const id = headers.get('x-ns-resolved-id') ?? headers.get('x-arns-resolved-id') ?? txId
    if (typeof id === 'string' && isContentId(id)) return id
    throw untrue(`${gateway}: ${name} means no id`)
  }
  throw new ClientError('not-found', `${gateway} does not know the name ${name}`, 'check the spelling')
}

/**
 * What a name means. Nothing in an answer proves it, so several gateways are asked, and more than half of those that answer, and
 * at least `quorum`, must agree: one that still shows an older content is outvoted. Who differs is told to `onFinding`.
 */
export async function nameResolved(
  gateways: Gateways,
  name: string,
  quorum: number,
  onFinding?: (finding: Finding) => void,
  signal?: AbortSignal,
): Promise<ResolvedName> {
  const votes = new Map<string, string[]>()
  const answers = await Promise.allSettled(
    gateways.urls.map(async (url) => {
      const gateway = url.replace(/\/+$/, '')
      const id = await askOne(gateways, gateway, name, signal)
      votes.set(id, [...(votes.get(id) ?? []), gateway])
    }),
  )
  const [best, ...others] = [...votes].sort(([, one], [, other]) => other.length - one.length)
  const told = [...votes.values()].reduce((sum, list) => sum + list.length, 0)
  if (best === undefined) {
    const failed = answers.find((answer) => answer.status === 'rejected')
    throw (
      failed?.reason ?? new ClientError('not-found', `nobody knows the name ${name}`, 'check the spelling')
    )
  }
  const [id, agreed] = best
  if (agreed.length < quorum || agreed.length * 2 <= told)
    throw untrue(
      `gateways do not agree on ${name}: ${[...votes].map(([one, list]) => `${one} by ${list.length}`).join(', ')}`,
    )
  for (const [other, list] of others)
    for (const gateway of list)
      onFinding?.({ gateway, error: untrue(`${gateway}: ${name} means ${other} there`) })
  return { id, agreed }
}
