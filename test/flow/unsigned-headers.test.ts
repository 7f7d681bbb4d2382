/**
 * The first bytes of an item name any wallet, and nobody has signed them: such headers change nothing of what the wallet has, of
 * what was shared with it, and of what the ledger keeps. Headers that are in other spellings of the owner, too.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { type Tag, tagOf } from '../../src/format/tag.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, ethereumSigner, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { addressOf } from '../signed-item.js'
import { run } from './running.js'

let [upload, payment] = ['', '']
const [giver, stranger] = [ed25519Signer(Buffer.alloc(32, 51)), ed25519Signer(Buffer.alloc(32, 52))]
const victim = ethereumSigner(Buffer.alloc(32, 53))

async function topUp(signer: ItemSigner): Promise<void> {
  const session = await fetch(`${payment}/v1/top-up/checkout-session/${addressOf(signer)}/usd/5000`)
  const { paymentSession } = (await session.json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
}

let items = 0
function post(signer: ItemSigner, bytes: number, tags: readonly Tag[], paidBy?: string): Promise<Response> {
  items += 1
  const body = signItem(signer, { tags: [...tags] }, Buffer.alloc(bytes, `${items}`))
  const paid = paidBy === undefined ? {} : { 'x-paid-by': paidBy }
  return fetch(`${upload}/v1/tx`, {
    method: 'POST',
    body,
    headers: { 'x-forwarded-for': '192.0.2.1', ...paid },
  })
}

const share = (by: ItemSigner, wallet: string, winc: string): Promise<Response> =>
  post(by, 10, [tagOf('x-approve-payment', wallet), tagOf('x-amount', winc)])

async function shared(address: string): Promise<readonly [number, number]> {
  const answer = await fetch(`${payment}/v1/account/approvals/get?userAddress=${address}`)
  const { receivedApprovals, givenApprovals } = (await answer.json()) as Record<string, unknown[]>
  return [receivedApprovals?.length ?? 0, givenApprovals?.length ?? 0]
}

/** Sends the head of a request for a large item, and the beginning of an item. Resolves with the status. */
async function claim(type: number, owner: Uint8Array, at: number): Promise<string> {
  const { hostname, port } = new URL(upload)
  const socket = connect(Number(port), hostname)
  const lines = [
    'POST /v1/tx HTTP/1.1',
    'Host: x',
    `X-Forwarded-For: 198.51.100.${at}`,
    'Content-Length: 300000',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const begins = [Uint8Array.of(type, 0), Buffer.alloc(65, 1 + at), owner, Buffer.alloc(18)]
  socket.write(Buffer.concat([...begins, Buffer.alloc(600)]))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return answer.toString('latin1').slice(9, 12)
}

t.test('headers that nobody has signed hide nothing that was shared', async (t) => {
  const { urls } = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    TRUSTED_PROXIES: '127.0.0.0/8',
    SERVICES: 'upload,payment',
  })
  ;[upload, payment] = [urls.upload ?? '', urls.payment ?? '']
  await topUp(giver)
  await topUp(stranger)
  const wallet = addressOf(victim)
  const alias = normalizedAddress(victim.owner)
  t.equal((await share(giver, alias, '3000000000000')).status, 200)
  // A wallet without anything is not recorded, so a stranger gives it something first.
  t.equal((await share(stranger, wallet, '1')).status, 200)
  const paid = (): Promise<Response> => post(victim, 300_000, [], addressOf(giver))
  t.equal((await paid()).status, 200, 'it pays for uploads')
  const spelled = Array.from({ length: 8 }, (_, at) => {
    const hex = wallet.slice(2).toLowerCase()
    return `0x${at === 0 ? hex : hex.slice(0, at * 4) + hex.slice(at * 4).toUpperCase()}`
  })
  const owners: [number, Uint8Array][] = [
    ...spelled.map((text): [number, Uint8Array] => [7, Buffer.from(text)]),
    ...[0, 2, 3, 5, 255].map((first): [number, Uint8Array] => {
      return [3, Buffer.concat([Uint8Array.of(first), victim.owner.subarray(1)])]
    }),
  ]
  for (const [at, [type, owner]] of owners.entries()) {
    t.equal(await claim(type, owner, at), '402', 'it has no credits of its own')
    // What was shared with the address of this spelling is nobody's else: this key's owner has not signed for it.
    t.same(await shared(normalizedAddress(owner)), [0, 0], `an owner of type ${type} leads nowhere`)
  }
  for (const address of [wallet, alias]) t.same(await shared(address), [2, 0])
  t.equal((await paid()).status, 200)
  const revoked = await post(giver, 10, [tagOf('x-delete-payment-approval', alias)])
  t.equal(revoked.status, 200, 'and the giver has it back')
  t.same(await shared(wallet), [1, 0])
})
