import { isId } from '../../format/id.js'
import { ClientError } from '../errors.js'
import { type Agreed, agreed } from './agreement.js'
import { type Finding, type Gateways, untrue } from './gateways.js'
import { responseSignature } from './http-signature.js'

/** An answer about a name has a few hundred bytes. */
const meaningMaxBytes = 64 * 1024

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
    const { txId } = await gateways.json(response, signal, meaningMaxBytes)
    const id = headers.get('x-ns-resolved-id') ?? headers.get('x-arns-resolved-id') ?? txId
    if (typeof id === 'string' && isId(id)) return id
    throw untrue(`${gateway}: ${name} means no id`)
  }
  throw new ClientError('not-found', `${gateway} does not know the name ${name}`, 'check the spelling')
}

/** What a name means, by the agreement of at least `quorum` gateways: see `agreed`. */
export async function nameResolved(
  gateways: Gateways,
  name: string,
  quorum: number,
  onFinding?: (finding: Finding) => void,
  signal?: AbortSignal,
): Promise<Agreed<string>> {
  return agreed(gateways, {
    about: `the name ${name}`,
    quorum,
    onFinding,
    ask: (gateway) => askOne(gateways, gateway, name, signal),
    textOf: (id) => id,
  })
}
