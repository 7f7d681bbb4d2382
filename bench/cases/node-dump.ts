import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeBase64url } from '../../src/format/base64url.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { idOfBytes } from '../../src/format/id.js'
import { encodeItem } from '../../src/format/item.js'
import { tagOf } from '../../src/format/tag.js'
import { dataTree } from '../../src/proof/data-root.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { Dice } from '../kit/dice.js'

export const itemsPerBundle = 1000

/** A bundle of items with the tags of real ones: some that all have, some that nobody else has. */
function bundleOf(dice: Dice, payloadBytes: number, isSigned: boolean): Uint8Array {
  const signers = Array.from({ length: 20 }, (_, rank) => ed25519Signer(Buffer.alloc(32, rank + 1)))
  const items = Array.from({ length: itemsPerBundle }, (_, at) => {
    const tags = [tagOf('App-Name', `app-${dice.zipf(200)}`), tagOf('Content-Type', 'application/json')]
    if (at % 2 === 0) tags.push(tagOf('Type', 'Message'))
    if (dice.next() < 0.5) tags.push(tagOf('Version', `1.${dice.zipf(50)}.0`))
    if (dice.next() < 0.3) tags.push(tagOf('File-Id', dice.bytes(16).toString('hex')))
    if (dice.next() < 0.3) tags.push(tagOf('Unix-Time', String(1_600_000_000 + dice.below(100_000_000))))
    const signer = signers[dice.zipf(signers.length)]
    if (signer === undefined) throw new Error('no signer')
    const target = dice.next() < 0.4 ? dice.bytes(32) : Buffer.alloc(0)
    const payload = dice.bytes(payloadBytes)
    const { signatureType, owner } = signer
    const bytes = isSigned
      ? signItem(signer, { target, tags }, payload)
      : encodeItem({ signatureType, owner, signature: dice.bytes(64), target, tags }, payload)
    // Two bytes of type, then the signature, whose hash is the id.
    return { id: idOfBytes(sha256(bytes.subarray(2, 66))), bytes }
  })
  return encodeBundle(items)
}

/**
 * Writes what a node would answer for made-up blocks of one bundle each, as files that `sluice import` reads; the data of the
 * bundles goes into `later/`. Returns the bytes of all bundles and their ids in chain order. Unsigned bundles are written ten
 * times as fast; they fit only for readers that verify nothing.
 */
export function writeChain(
  path: string,
  items: number,
  payloadBytes: number,
  isSigned: boolean,
): { readonly bytes: number; readonly ids: readonly string[] } {
  for (const name of ['blocks', 'transactions', 'later']) mkdirSync(join(path, name), { recursive: true })
  const dice = new Dice(3)
  const ids: string[] = []
  let previous = ''
  let bytes = 0
  for (let height = 0; height < items / itemsPerBundle; height += 1) {
    const data = bundleOf(dice, payloadBytes, isSigned)
    bytes += data.length
    const signature = randomBytes(512)
    const id = idOfBytes(sha256(signature))
    const text = (name: string, value: string) => ({
      name: encodeBase64url(Buffer.from(name)),
      value: encodeBase64url(Buffer.from(value)),
    })
    const header = {
      format: 2,
      id,
      last_tx: '',
      owner: encodeBase64url(randomBytes(512)),
      target: '',
      quantity: '0',
      tags: [text('Bundle-Format', 'binary'), text('Bundle-Version', '2.0.0')],
      data: '',
      data_size: String(data.length),
      data_root: encodeBase64url(dataTree(data).root),
      reward: '1',
      signature: encodeBase64url(signature),
    }
    const hash = randomBytes(48).toString('base64url')
    const block = {
      indep_hash: hash,
      previous_block: previous,
      height,
      timestamp: 1_700_000_000 + height,
      txs: [id],
      tx_root: '',
      weave_size: String(bytes),
      block_size: String(data.length),
    }
    previous = hash
    writeFileSync(join(path, 'blocks', `${height}.json`), JSON.stringify(block))
    writeFileSync(join(path, 'transactions', `${id}.json`), JSON.stringify(header))
    writeFileSync(join(path, 'later', id), data)
    ids.push(id)
  }
  return { bytes, ids }
}
