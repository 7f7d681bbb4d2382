/** A wallet lets a name mean something at a gateway far away: who may, what is carried out once, and what is refused. */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { signedHeaders } from '../../src/client/signed-headers.js'
import {
  type ClientSigner,
  signerOfArweave,
  signerOfEd25519,
  signerOfEthereum,
  signerOfSolana,
} from '../../src/client/signer.js'
import { type NamingOrder, nameOrderText } from '../../src/names/name-order.js'
import { fixtureJson } from '../fixture-file.js'
import { askAt } from '../gateway/rig.js'
import { someId } from '../source/rig.js'
import { type Running, run, sluice } from './running.js'

const adminKey = 'a-key-for-this-test-only'
const settings = { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '3600000', ADMIN_API_KEY: adminKey }

interface Deployed {
  readonly id: string
  readonly link: string
  readonly named?: string
  readonly nameError?: { readonly code: string }
}

let folder = ''
let running: Running
const own = (): Record<string, string> => ({ DATA_PATH: join(folder, 'data') })

t.before(async () => {
  folder = t.testdir({ key: '', site: { 'index.html': '<p>hi' } })
  writeFileSync(join(folder, 'key'), '21'.repeat(32), { mode: 0o600 })
  const { chmodSync } = await import('node:fs')
  chmodSync(join(folder, 'key'), 0o600)
  running = await run(t, join(folder, 'data'), settings)
})

/** Deploys as somebody who has nothing of the gateway's but its address. */
async function deploy(name: string): Promise<{ code: number; err: string; deployed: Deployed }> {
  const { upload = '', payment = '', gateway = '' } = running.urls
  const places = [
    '--upload',
    upload,
    '--payment',
    payment,
    '--gateway',
    gateway,
    '--key',
    join(folder, 'key'),
  ]
  const words = ['deploy', join(folder, 'site'), '--name', name, '--json', ...places]
  const { code, out, err } = await sluice(words, { HOME: join(folder, 'home') })
  return { code, err, deployed: out === '' ? ({} as Deployed) : (JSON.parse(out) as Deployed) }
}

async function granted(name: string, { address }: ClientSigner): Promise<void> {
  const done = await sluice(['names', 'grant', name, address], own())
  t.equal(done.code, 0, done.err)
}

const hostOf = (): string => new URL(running.urls.gateway ?? '').host

function orderFor(id = someId()): NamingOrder {
  return { record: { id, ttlSeconds: 0 }, gateway: hostOf(), timeMs: systemClock.now() }
}

/** Signs an order, and sends it; `sent`: what is sent in place of what was signed. */
async function send(
  name: string,
  signer: ClientSigner,
  order: NamingOrder,
  sent: object = {},
): Promise<{ status: number; text: string; again(): Promise<number> }> {
  const headers = {
    'content-type': 'application/json',
    ...(await signedHeaders(signer, nameOrderText(name, order))),
  }
  const { record, gateway, timeMs } = order
  const body = JSON.stringify({ ...record, gateway, timeMs, ...sent })
  const put = () => putOnce(`/gateway/names/${name}`, headers, body)
  return { ...(await put()), again: async () => (await put()).status }
}

/** On a connection of its own: an order is not repeated where a kept one has just been closed. */
function putOnce(
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const exchange = request(new URL(path, running.urls.gateway), { method: 'PUT', agent: false, headers })
    exchange.on('error', reject).on('response', (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece)).on('error', reject)
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
      )
    })
    exchange.end(body)
  })
}

async function meaningOf(name: string): Promise<string | undefined> {
  const answer = await fetch(`${running.urls.gateway}/gateway/resolver/${name}`)
  return answer.ok ? ((await answer.json()) as { txId: string }).txId : void (await answer.body?.cancel())
}

t.test(
  'without the right a folder is told of by its id; with it by its name, which the gateway serves',
  async (t) => {
    const signer = await signerOfEthereum('21'.repeat(32))
    const refused = await deploy('docs')
    t.equal(refused.code, 6, refused.err)
    t.match(refused.err, `sluice names grant docs ${signer.address}`)
    t.match(refused.deployed, { nameError: { code: 'forbidden' }, named: undefined })
    t.equal((await fetch(refused.deployed.link)).status, 200)
    t.equal(await meaningOf('docs'), undefined)

    await granted('docs', signer)
    const { code, err, deployed } = await deploy('docs')
    t.equal(code, 0, err)
    t.equal(deployed.id, refused.deployed.id, 'nothing was uploaded anew')
    t.equal(deployed.named, `http://docs.${hostOf().replace('127.0.0.1', 'localhost')}/`)
    const page = await askAt(running.urls.gateway ?? '', '/', 'GET', {
      host: new URL(deployed.named ?? '').host,
    })
    t.equal(page.status, 200)
    t.equal(page.body.toString(), '<p>hi')
  },
)

t.test('wallets of every kind set names; undernames go with the name', async (t) => {
  const jwk = fixtureJson<Parameters<typeof signerOfArweave>[0]>('rsa-4096.jwk.json')
  const seed = new Uint8Array(32).fill(9)
  const signers = [
    await signerOfArweave(jwk),
    await signerOfEthereum('22'.repeat(32)),
    await signerOfEd25519(seed),
    await signerOfSolana(seed),
  ]
  for (const [at, signer] of signers.entries()) {
    const name = `kind${at}`
    await granted(name, signer)
    for (const each of [name, `under_${name}`]) {
      const order = orderFor()
      const { status, text } = await send(each, signer, order)
      t.equal(status, 200, text)
      t.equal(await meaningOf(each), order.record.id)
    }
    t.equal((await send('docs', signer, orderFor())).status, 403, 'no name but that')
  }
})

t.test('an order is carried out once, here, now, as it was signed, by whom it was signed', async (t) => {
  const signer = await signerOfEthereum('23'.repeat(32))
  await granted('once', signer)
  const order = orderFor()
  const first = await send('once', signer, order)
  t.equal(first.status, 200, first.text)
  t.equal(await first.again(), 409)
  const other = someId()
  const wrong: readonly (readonly [what: string, status: number, order: NamingOrder, sent?: object])[] = [
    ['another id', 401, orderFor(), { id: other }],
    ['another ttl', 401, orderFor(), { ttlSeconds: 1 }],
    ['another time', 401, orderFor(), { timeMs: systemClock.now() + 1000 }],
    ['another gateway', 403, { ...orderFor(), gateway: 'other.example' }],
    ['another program of this machine', 403, { ...orderFor(), gateway: 'localhost:1' }],
    [
      'signed for another, sent as for here',
      401,
      { ...orderFor(), gateway: 'other.example' },
      { gateway: hostOf() },
    ],
    ['old', 400, { ...orderFor(), timeMs: systemClock.now() - 301_000 }],
    ['of the future', 400, { ...orderFor(), timeMs: systemClock.now() + 120_000 }],
    ['no id', 400, orderFor(), { id: 'x' }],
    ['no time', 400, orderFor(), { timeMs: 'now' }],
    ['a long ttl', 400, orderFor(), { ttlSeconds: 1e9 }],
    ['too long', 413, orderFor(), { more: 'x'.repeat(5000) }],
  ]
  for (const [what, status, each, sent] of wrong) {
    const deployed = await send('once', signer, each, sent)
    t.equal(deployed.status, status, `${what}: ${deployed.text}`)
  }
  t.equal((await send('a.b', signer, orderFor())).status, 400)
  const stranger = await send('once', await signerOfEthereum('24'.repeat(32)), orderFor())
  t.match(stranger, { status: 403, text: /may not set the name once here/ })
  const unsigned = await putOnce('/gateway/names/once', {}, '{}')
  t.equal(unsigned.status, 400)
  t.equal(await meaningOf('once'), order.record.id, 'nothing of that changed it')
})

t.test('what the operator did since stands, and what is blocked stays blocked', async (t) => {
  const signer = await signerOfEthereum('25'.repeat(32))
  await granted('*', signer)
  const held = orderFor()
  const theirs = someId()
  t.equal((await sluice(['names', 'set', 'mine', theirs], own())).code, 0)
  t.equal((await send('mine', signer, held)).status, 409, 'signed before')
  const taken = await send('mine', signer, orderFor())
  t.equal(taken.status, 200)
  t.equal((await sluice(['names', 'remove', 'mine'], own())).code, 0)
  t.equal(await taken.again(), 409, 'removed since')

  const authorization = `Bearer ${adminKey}`
  const body = JSON.stringify({ name: 'bad', source: 'test', notes: 'x' })
  const headers = { authorization, 'content-type': 'application/json' }
  const block = await fetch(`${running.urls.gateway}/gateway/admin/block-name`, {
    method: 'PUT',
    headers,
    body,
  })
  t.equal(block.status, 200)
  t.match(await send('bad', signer, orderFor()), { status: 451, text: /blocked/ })
  t.equal(await meaningOf('bad'), undefined)

  t.equal((await sluice(['names', 'revoke', '*', signer.address], own())).code, 0)
  t.equal((await send('mine', signer, orderFor())).status, 403)
})

t.test('what was set, and that it was, outlive kill -9', async (t: Test) => {
  const signer = await signerOfEthereum('23'.repeat(32))
  const order = orderFor()
  const { status } = await send('once', signer, order)
  t.equal(status, 200)
  await running.kill()
  running = await run(t, join(folder, 'data'), settings)
  t.equal(await meaningOf('once'), order.record.id)
  t.equal((await send('once', signer, { ...order, gateway: hostOf() })).status, 409, 'its time has passed')
  t.match(JSON.parse((await sluice(['names', 'grants', '--json'], own())).out), [
    { name: 'docs' },
    { name: 'kind0' },
    { name: 'kind1' },
    { name: 'kind2' },
    { name: 'kind3' },
    { name: 'once' },
  ])
})
