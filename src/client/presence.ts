import { ClientError } from './errors.js'
import { takenIds } from './folder-index.js'
import { inParallel } from './parallel.js'
import type { RemoteService } from './service.js'

/** An item that was reported as uploaded. */
export interface ReportedUpload {
  readonly id: string
  /** SHA-256 of its payload in hexadecimal digits. */
  readonly hash: string
  /** The uploaded item that it lies in; itself where that is not known. */
  readonly carrier: string
}

export interface PresenceParts {
  readonly service: RemoteService
  /** The gateway that is to serve it. */
  readonly gateway: RemoteService
  /** base64url SHA-256 of the owner's key. */
  readonly owner: string
  readonly signal?: AbortSignal | undefined
}

/** Requests on their way at once. */
const requestsAtOnce = 8
/** A gateway that fails so often gets no more requests. */
const gatewayFailuresMax = 3

/**
 * Those of some items that are there now: the upload service keeps them (`/check-missing`, `/tx/{id}/status`), or the gateway
 * serves them. Rejects where the service does not answer: nothing could be uploaded either. What the gateway cannot tell counts
 * as absent, because a link to nothing is worse than an upload that was not needed.
 */
export async function presentOnes(
  parts: PresenceParts,
  reported: readonly ReportedUpload[],
): Promise<ReadonlySet<string>> {
  const present = new Set<string>()
  if (reported.length === 0) return present
  const { service, owner, signal } = parts
  const taken = await takenIds(service, owner, [...new Set(reported.map(({ hash }) => hash))], signal)
  for (const { id, hash } of reported) if (taken?.get(hash) === id) present.add(id)
  const open = reported.filter(({ id }) => !present.has(id))
  // By content the service knows what it keeps and has looked into: not yet what lies in a bundle that it has not opened.
  const carriers = open.filter(
    ({ id, hash, carrier }) => taken === undefined || carrier !== id || taken.has(hash),
  )
  const kept = new Set<string>()
  await inParallel([...new Set(carriers.map(({ carrier }) => carrier))], requestsAtOnce, async (carrier) => {
    if (await isKept(service, carrier, signal)) kept.add(carrier)
  })
  for (const { id, carrier } of open) if (kept.has(carrier)) present.add(id)
  const gateway = new ServedAt(parts)
  await inParallel(
    [...new Set(open.map(({ id }) => id))].filter((id) => !present.has(id)),
    requestsAtOnce,
    async (id) => {
      if (await gateway.serves(id)) present.add(id)
    },
  )
  return present
}

/** Whether a service has an item, and has not given it up. */
async function isKept(service: RemoteService, id: string, signal: AbortSignal | undefined): Promise<boolean> {
  const { status, json } = await service.ask({ path: `/v1/tx/${id}/status`, signal, accepted: [200, 404] })
  return status === 200 && (json as { readonly status?: unknown } | undefined)?.status !== 'FAILED'
}

/** Asks a gateway for heads, and gives up where it fails again and again. */
class ServedAt {
  #failures = 0

  constructor(private readonly parts: Pick<PresenceParts, 'gateway' | 'signal'>) {}

  async serves(id: string): Promise<boolean> {
    if (this.#failures >= gatewayFailuresMax) return false
    const { gateway, signal } = this.parts
    try {
      const accepted = [200, 206, 404, 410, 451]
      const { status } = await gateway.ask({ method: 'HEAD', path: `/raw/${id}`, signal, accepted })
      this.#failures = 0
      // What is blocked there was found: it would not be served after another upload either.
      return status !== 404 && status !== 410
    } catch (error) {
      if (!(error instanceof ClientError) || error.code === 'aborted') throw error
      this.#failures++
      return false
    }
  }
}
