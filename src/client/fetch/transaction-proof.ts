import { decodeBase64url, encodeBase64url } from '../../format/base64url.js'
import { signedElements } from '../../proof/signed-elements.js'
import { utf8 } from '../bytes.js'
import { deepDigest } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { hash256 } from '../hash.js'
import { isRsaSigned } from '../rsa.js'
import { type Gateways, untrue } from './gateways.js'

/** What the owner of a transaction signed: no gateway is believed in it. */
export interface ProvenTransaction {
  readonly id: string
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  readonly contentType: string | undefined
  /** The owner's address. */
  readonly owner: string
}

/** Where the transaction's data lies in the weave, by a gateway; a wrong place only leads to chunks that prove nothing. */
export interface WeavePlace {
  /** Offset of the first byte as `/chunk/{offset}` counts. */
  readonly start: number
}

/** Reads a transaction's header and checks that its id is the hash of a signature by its owner over this data root. */
export async function transactionProven(
  gateways: Gateways,
  gateway: string,
  id: string,
  signal?: AbortSignal,
): Promise<ProvenTransaction> {
  const tx = await gateways.json(await gateways.get(`${gateway}/tx/${id}`, {}, signal), signal)
  const bytes = (name: string): Uint8Array => {
    const field = tx[name]
    const decoded = typeof field === 'string' ? decodeBase64url(field) : undefined
    if (decoded === undefined) throw untrue(`${gateway}: the transaction ${id} has no ${name}`)
    return decoded
  }
  if (tx.format !== 2 || tx.owner === '') {
    const found = `${id} is a transaction of format ${String(tx.format)}, whose data cannot be checked by chunks`
    throw new ClientError('rejected', found, 'fetch it whole from a gateway that you trust')
  }
  const signature = bytes('signature')
  if (encodeBase64url(hash256(signature)) !== id)
    throw untrue(`${gateway}: the signature is not that of ${id}`)
  const list: unknown[] = Array.isArray(tx.tags) ? tx.tags : []
  const field = (value: unknown): Uint8Array =>
    (typeof value === 'string' ? decodeBase64url(value) : undefined) ?? utf8('')
  const tags = (list as ({ name?: unknown; value?: unknown } | null)[]).map(
    (tag) => [field(tag?.name), field(tag?.value)] as const,
  )
  const decimal = (name: string): string => String(tx[name])
  const signed = signedElements({
    denomination: Number(tx.denomination ?? 0),
    owner: bytes('owner'),
    target: bytes('target'),
    quantity: decimal('quantity'),
    reward: decimal('reward'),
    lastTx: bytes('last_tx'),
    tags,
    dataSize: decimal('data_size'),
    dataRoot: bytes('data_root'),
  })
  if (!(await isRsaSigned(bytes('owner'), deepDigest(signed), signature)))
    throw untrue(`${gateway}: nobody signed the transaction ${id} like this`)
  const type = tags.find(([name]) => new TextDecoder().decode(name).toLowerCase() === 'content-type')
  return {
    id,
    dataRoot: bytes('data_root'),
    dataSize: Number(tx.data_size),
    owner: encodeBase64url(hash256(bytes('owner'))),
    contentType: type === undefined ? undefined : new TextDecoder().decode(type[1]),
  }
}

/** The place of a transaction's data, as a gateway states it. */
export async function weavePlace(
  gateways: Gateways,
  gateway: string,
  id: string,
  signal?: AbortSignal,
): Promise<WeavePlace> {
  const place = await gateways.json(await gateways.get(`${gateway}/tx/${id}/offset`, {}, signal), signal)
  const [end, size] = [Number(place.offset), Number(place.size)]
  if (!Number.isSafeInteger(end) || !Number.isSafeInteger(size) || end < size)
    throw untrue(`${gateway}: the transaction ${id} lies nowhere`)
  return { start: end - size + 1 }
}
