/** Items with keys of every type are taken and served, and what cannot be taken is refused as early as it can be known. */
import { type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createData, TypedEthereumSigner } from 'arbundles'
import t from 'tap'
import { signatureTypes } from '../../src/format/item.js'
import { tagOf } from '../../src/format/tag.js'
import {
  ed25519Key,
  ed25519Signer,
  ethereumSigner,
  type ItemSigner,
  rsaSigner,
  signItem,
  solanaSigner,
} from '../../src/proof/sign.js'
import { knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'
import { headerOf } from '../signed-item.js'

const settings = { DEVNET_SEED: 'false', UPLOAD_FREE_ITEM_BYTES: '5000' }
const program = await run(t, t.testdir(), settings)
const { upload = '', gateway = '' } = program.urls

const seed = Buffer.alloc(32, 11)
const keys: readonly { readonly key: KeyObject; readonly owner: Uint8Array }[] = [1, 2, 3].map((byte) =>
  ed25519Key(Buffer.alloc(32, byte)),
)

/** As wallets of Aptos do: over a text. */
function aptosSigner(): ItemSigner {
  const { key, owner } = ed25519Key(seed)
  const text = (message: Uint8Array): string =>
    `APTOS\nmessage: ${Buffer.from(message).toString('hex')}\nnonce: bundlr`
  return { signatureType: 5, owner, sign: (message) => sign(null, Buffer.from(text(message)), key) }
}

/** Two of three keys sign; the bitmap behind the signatures says which. */
function manyAptosSigner(): ItemSigner {
  const owner = Buffer.alloc(1025)
  for (const [at, one] of keys.entries()) owner.set(one.owner, 32 * at)
  owner[1024] = 2
  return {
    signatureType: 6,
    owner,
    sign: (message) => {
      const signature = Buffer.alloc(2052)
      for (const [at, { key }] of keys.slice(0, 2).entries()) signature.set(sign(null, message, key), 64 * at)
      signature[2048] = 0b1100_0000
      return signature
    },
  }
}

async function post(bytes: Uint8Array, path = '/v1/tx/any'): Promise<Response> {
  return fetch(upload + path, { method: 'POST', body: bytes })
}

const signers: readonly ItemSigner[] = [
  rsaSigner({ ...knownWallet() }),
  ed25519Signer(seed),
  ethereumSigner(seed),
  solanaSigner(seed),
  aptosSigner(),
  manyAptosSigner(),
]

t.test('items with keys of every type are taken, but for a changed byte', async (t) => {
  const tags = [tagOf('Content-Type', 'text/plain')]
  const items = signers.map((signer) => {
    const text = `of type ${signer.signatureType}`
    return [signer.signatureType, Buffer.from(signItem(signer, { tags }, Buffer.from(text)))] as const
  })
  const typed = new TypedEthereumSigner(seed.toString('hex'))
  const seventh = createData('of type 7', typed, { tags: [{ name: 'Content-Type', value: 'text/plain' }] })
  await seventh.sign(typed)
  const all = [...items, [7, seventh.getRaw()] as const]
  t.strictSame(new Set(all.map(([type]) => type)), new Set(signatureTypes.keys()), 'none is left out')
  for (const [type, item] of all) {
    const bent = Buffer.from(item)
    bent[bent.length - 1] = (bent.at(-1) ?? 0) ^ 1
    const refused = await post(bent)
    t.equal(refused.status, 400)
    t.equal(await refused.text(), 'Invalid Data Item!', `type ${type}`)
    // Where the last byte of the signature says nothing, and where no signer of several stands.
    const looseAt = { 3: 2 + 64, 7: 2 + 64, 6: 2 + 64 * 20 }[type]
    if (looseAt !== undefined) {
      const other = Buffer.from(item)
      other[looseAt] = type === 6 ? 1 : (other[looseAt] ?? 0) - 27
      const loose = await post(other)
      t.equal(loose.status, 400, `type ${type}: another form of the signature`)
      t.match(await loose.text(), /^Invalid Data Item! Its signature must be in its one form/)
    }
    const answer = await post(item)
    t.equal(answer.status, 200, `type ${type}`)
    const { id, owner } = (await answer.json()) as { id: string; owner: string }
    const served = await fetch(`${gateway}/${id}`)
    t.equal(await served.text(), `of type ${type}`)
    t.match(owner, /^[\w-]{43}$/)
  }
})

/** Sends a head and the beginning of a body, and reads what comes without the rest of it. */
async function begun(head: string, beginning: Uint8Array): Promise<string> {
  const { hostname: host, port } = new URL(upload)
  const socket = connect({ host, port: Number(port) })
  await once(socket, 'connect')
  socket.write(head)
  socket.write(beginning)
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text
}

t.test('who cannot pay is told so before the body is here', async (t) => {
  const payload = Buffer.alloc(2_000_000, 'large')
  const item = signItem(ed25519Signer(Buffer.alloc(32, 12)), {}, payload)
  const head = `POST /v1/tx HTTP/1.1\r\nHost: x\r\nContent-Length: ${item.length}\r\n\r\n`
  const answer = await begun(head, item.subarray(0, 2000))
  t.match(answer, /^HTTP\/1\.1 402 /)
  t.match(answer, /X-Free-Tier-Exhausted: true/i)
  t.match(answer, '"code":"FREE_TIER_EXHAUSTED"')
})

t.test('a flood of items of one size without tags is refused', async (t) => {
  const signer = ed25519Signer(seed)
  const sized = (bytes: number, tags: { name: Uint8Array; value: Uint8Array }[] = []): Buffer => {
    const empty = signItem(signer, { tags }, Buffer.alloc(0)).length
    return Buffer.from(signItem(signer, { tags }, Buffer.alloc(bytes - empty, 'flood')))
  }
  const flood = await post(sized(100_372))
  t.equal(flood.status, 403)
  t.equal(await flood.text(), 'Forbidden')
  t.equal((await post(sized(100_373))).status, 402, 'others are too large to be free here')
  t.equal((await post(sized(100_372, [tagOf('A', 'b')]))).status, 402)
})

t.test('an upload in parts says that credits could not be shared or taken back', async (t) => {
  const signer = ed25519Signer(Buffer.alloc(32, 13))
  const cases = [
    ['APPROVAL_FAILED', [tagOf('x-approve-payment', 'nobody'), tagOf('x-amount', '5')]],
    ['REVOKE_FAILED', [tagOf('x-delete-payment-approval', 'A'.repeat(43))]],
  ] as const
  for (const [state, tags] of cases) {
    const item = signItem(signer, { tags }, Buffer.from(state))
    const { id } = (await (await fetch(`${upload}/v1/chunks/any/-1/-1`)).json()) as { id: string }
    const parts = `${upload}/v1/chunks/any/${id}`
    t.equal((await fetch(`${parts}/0`, { method: 'POST', body: item })).status, 200)
    t.equal((await fetch(`${parts}/finalize`, { method: 'POST' })).status, 202)
    const partsStatus = await eventually('the parts are judged', async () => {
      const partsStatus = (await (await fetch(`${parts}/status`)).json()) as { status: string }
      return partsStatus.status.endsWith('ING') ? undefined : partsStatus
    })
    t.match(partsStatus, {
      status: state,
      reason: /^Unable to (create|revoke) delegated payment approval : /,
    })
    t.match(await (await fetch(`${parts}/-1`)).json(), { failedReason: state })
    const header = headerOf(item)
    t.equal((await fetch(`${upload}/tx/${header.id}/status`)).status, 404, 'the item was not taken')
  }
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
