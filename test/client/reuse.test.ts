/** Files that a gateway says are on the network already: none is reused whose bytes its owner did not sign. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { uploadFolder } from '../../src/client/folder.js'
import { chainLayer, hashTag } from '../../src/client/folder-index.js'
import { sourceOfBytes } from '../../src/client/payload.js'
import { addressOfOwner, signerOfEd25519 } from '../../src/client/signer.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf, tagText } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { serving } from './rig.js'

const seed = Buffer.alloc(32, 7)
const own = ed25519Signer(seed)
const content = Buffer.from('the bytes of the file')
const hash = createHash('sha256').update(content).digest('hex')

/** What GraphQL says of an item, changed by a gateway. */
function statedOf(bytes: Uint8Array, change: object = {}): object {
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('an item that was just signed is none')
  return {
    id: header.id,
    signature: encodeBase64url(header.signature),
    anchor: Buffer.from(header.anchor).toString(),
    recipient: '',
    block: { height: 1 },
    owner: { address: addressOfOwner(header.owner), key: encodeBase64url(header.owner) },
    tags: header.tags.map(tagText),
    ...change,
  }
}

const tags = [tagOf('Content-Type', 'text/plain'), tagOf(hashTag, hash)]
const mine = signItem(own, { tags }, content)
const texts = tags.map(tagText)
const owner = { address: addressOfOwner(own.owner), key: encodeBase64url(own.owner) }
const stranger = ed25519Signer(Buffer.alloc(32, 8))

const stated: Readonly<Record<string, { readonly node: object; readonly isReused: boolean }>> = {
  'the item of the owner': { node: statedOf(mine), isReused: true },
  'an item of a stranger under the name of the owner': {
    node: statedOf(signItem(stranger, { tags }, Buffer.from('evil')), { owner }),
    isReused: false,
  },
  'an item of a stranger with the same bytes': {
    node: statedOf(signItem(stranger, { tags }, content), {
      owner: { ...owner, key: encodeBase64url(stranger.owner) },
    }),
    isReused: false,
  },
  'other bytes of the owner under the same tags': {
    node: statedOf(signItem(own, { tags }, Buffer.from('older bytes'))),
    isReused: false,
  },
  'other tags than the owner signed': {
    node: statedOf(signItem(own, { tags: [tagOf(hashTag, hash)] }, content), { tags: texts }),
    isReused: false,
  },
  'another id': { node: statedOf(mine, { id: 'A'.repeat(43) }), isReused: false },
  'no signature': { node: statedOf(mine, { signature: '' }), isReused: false },
}

for (const [name, { node, isReused }] of Object.entries(stated))
  t.test(`${name}: ${isReused ? 'reused' : 'uploaded anew'}`, async (t) => {
    let uploads = 0
    const { url } = await serving(t, ({ path }) => {
      if (path === '/v1/info') return { json: { addresses: { arweave: 'A'.repeat(43) } } }
      if (path.startsWith('/graphql')) return { json: { data: { transactions: { edges: [{ node }] } } } }
      if (path.startsWith('/v1/tx') || path === '/tx') uploads += 1
      return { status: 404 }
    })
    const signer = await signerOfEd25519(seed)
    const client = new SluiceClient({
      uploadUrl: url,
      paymentUrl: url,
      gatewayUrls: [url],
      signer,
      retry: { tries: 1 },
    })
    const notices: string[] = []
    const task = uploadFolder(client, {
      files: [{ path: 'a.txt', source: sourceOfBytes(content), contentType: 'text/plain' }],
      folderIndex: [chainLayer(url, owner.address, (address, init) => fetch(address, init))],
      manifest: false,
    })
    const heard = async (): Promise<void> => {
      for await (const event of task) if (event.type === 'notice') notices.push(event.message)
    }
    // Both reject where the upload fails.
    const [result] = await Promise.all(
      [task.result, heard()].map((one) => one.catch((error: Error) => error)),
    )
    if (isReused) t.match(result, { folderIndexSummary: { uploadedFiles: 0, reusedFiles: 1 } })
    else t.ok(result instanceof Error, 'the upload was tried, at a service that takes none')
    t.equal(uploads > 0, !isReused)
    t.equal(
      notices.some((text) => text.includes('is not proven')),
      !isReused,
    )
  })
