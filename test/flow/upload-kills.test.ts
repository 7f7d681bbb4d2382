/**
 * Uploads while the program is killed at random moments (KILLS of them, else 3): what has a receipt is served, ends permanent,
 * and was paid for once.
 */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { newAccount, payee } from '../admission/scene.js'
import { scriptedFacilitator } from '../admission/scripted-facilitator.js'
import { payment } from '../admission/shop.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { addressOf, headerOf } from '../signed-item.js'
import { type Running, run, sluice } from './running.js'

const kills = Number(process.env.KILLS ?? 3)
t.setTimeout(1_200_000 + kills * 60_000)
const chunkBytes = 5_242_880
const freeBytes = 1_000_000_000
/** Receipts until the kill, and the time from there: in both cases up to so much, by chance. */
const killAfter = { receipts: 10, ms: 200 }

/** An item on its way to its receipt: sent again, as it is, until there is one. */
interface Upload {
  readonly how: 'free' | 'bundle' | 'credits' | 'parts' | 'usdc'
  readonly item: Buffer
  readonly payload: Buffer
  /** Of an item in it, where it is a bundle. */
  readonly inner?: { readonly id: string; readonly payload: Buffer }
  /** Of a payment of its own, once it is signed. */
  headers?: Record<string, string>
  /** Name of an upload in parts, once it has begun. */
  parts?: string
}

interface Receipt {
  readonly id: string
  readonly winc: string
}

const account = newAccount()

/** Sends an upload and resolves with its receipt; undefined: the program is gone, or asks to come again. */
async function sent(program: Running, upload: Upload): Promise<Receipt | undefined> {
  const base = `${program.urls.upload}/v1`
  const { how, item } = upload
  try {
    if (how === 'parts') return await inParts(base, upload)
    if (how !== 'usdc') return await outcomeOf(await fetch(`${base}/tx`, { method: 'POST', body: item }))
    const url = `${base}/x402/upload/signed`
    if (upload.headers === undefined) {
      const offer = await fetch(url, { method: 'POST', body: item })
      const { accepts } = (await offer.json()) as { accepts?: { maxAmountRequired: string }[] }
      const value = accepts?.[0]?.maxAmountRequired
      if (value === undefined) return undefined
      // It is sent again until there is a receipt, after as many kills as there are.
      const validBefore = Math.floor(Date.now() / 1000) + 3600
      upload.headers = await payment(account, 1, { to: payee, value, validBefore })
    }
    return await outcomeOf(await fetch(url, { method: 'POST', body: item, headers: upload.headers }))
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

async function outcomeOf(answer: Response): Promise<Receipt | undefined> {
  const text = await answer.text()
  if (answer.status === 503) return undefined
  if (answer.status !== 200 && answer.status !== 202) throw new Error(`${answer.status}: ${text}`)
  return JSON.parse(text) as Receipt
}

async function inParts(base: string, upload: Upload): Promise<Receipt | undefined> {
  const { item } = upload
  if (upload.parts === undefined) {
    const begun = await fetch(`${base}/chunks/any/-1/-1?chunkSize=${chunkBytes}`)
    upload.parts = ((await begun.json()) as { id: string }).id
  }
  const url = `${base}/chunks/any/${upload.parts}`
  const { status } = (await (await fetch(`${url}/status`)).json()) as { status: string }
  if (status === 'ASSEMBLING') {
    for (const offset of [chunkBytes, 0]) {
      const body = item.subarray(offset, offset + chunkBytes)
      await (await fetch(`${url}/${offset}`, { method: 'POST', body })).text()
    }
  }
  return outcomeOf(await fetch(`${url}/-1`, { method: 'POST' }))
}

function bundleOf(signer: ItemSigner, payload: Buffer): Upload {
  const bytes = signItem(signer, {}, payload)
  const { id } = headerOf(bytes)
  const bundle = Buffer.from(encodeBundle([{ id, bytes }]))
  const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
  const item = Buffer.from(signItem(signer, { tags }, bundle))
  return { how: 'bundle', payload: bundle, item, inner: { id, payload } }
}

t.test(`what has a receipt outlives ${kills} kills`, async (t) => {
  const facilitator = await scriptedFacilitator(t)
  facilitator.remembers = true
  facilitator.balances.set(account.address.toLowerCase(), 10n ** 15n)
  const folder = t.testdir()
  const settings = {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '500',
    UPLOAD_FREE_ITEM_BYTES: '2000',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
    UPLOAD_FREE_WALLET_BYTES: String(freeBytes),
  }
  const signer = ed25519Signer(Buffer.alloc(32, 21))
  let count = 0
  const made = (how: Upload['how']): Upload => {
    const bytes = { free: 500, bundle: 300, credits: 20_000, parts: chunkBytes + 1000, usdc: 30_000 }[how]
    const payload = Buffer.alloc(bytes, `${how} ${count++} of this run ${random()}`)
    if (how === 'bundle') return bundleOf(signer, payload)
    return { how, payload, item: Buffer.from(signItem(signer, {}, payload)) }
  }
  const receipts = new Map<Upload, Receipt>()
  const doubtful = new Map<Upload['how'], Upload>()
  const uploader = async (program: Running, how: Upload['how'], isOver: () => boolean): Promise<void> => {
    while (!isOver()) {
      const upload = doubtful.get(how) ?? made(how)
      doubtful.set(how, upload)
      const receipt = await sent(program, upload)
      if (receipt === undefined) {
        await pause(20)
        continue
      }
      receipts.set(upload, receipt)
      doubtful.delete(how)
    }
  }
  const kinds = ['free', 'bundle', 'credits', 'parts', 'usdc'] as const
  /** Alone they leave the tables behind the log for some time: all others write to them at once. */
  const later = ['free', 'bundle'] as const

  let bought = 0n
  const balance = async ({ urls }: Running): Promise<bigint> => {
    const outcomeOf = await fetch(`${urls.payment}/v1/account/balance/any?address=${addressOf(signer)}`)
    return BigInt(((await outcomeOf.json()) as { winc: string }).winc)
  }
  for (let round = 0; round < kills; round += 1) {
    const program = await run(t, folder, settings)
    if (round === 0) {
      const where = `${program.urls.payment}/v1/top-up/checkout-session/${addressOf(signer)}/usd/1000000`
      const { paymentSession } = (await (await fetch(where)).json()) as { paymentSession: { url: string } }
      const body = new URLSearchParams({ card: '4242424242424242' })
      await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
      bought = await balance(program)
      t.ok(bought > 0n)
    }
    let isOver = false
    const wanted = receipts.size + Math.floor(random() * killAfter.receipts)
    const hows = round % 2 === 0 ? kinds : later
    const running = Promise.all(hows.map((how) => uploader(program, how, () => isOver)))
    await eventually(
      `${wanted} receipts`,
      () => receipts.size >= wanted,
      () => [...doubtful.keys()],
    )
    await pause(random() * killAfter.ms)
    await program.kill()
    isOver = true
    await running
  }

  const program = await run(t, folder, settings)
  for (const [how, upload] of doubtful) {
    receipts.set(upload, await eventually(`a receipt of ${how}`, () => sent(program, upload)))
    t.ok(receipts.has(upload), `the last one of ${how} has its receipt in the end`)
  }
  let [spent, free] = [0n, 0]
  for (const [{ how, item, payload, inner }, { id, winc }] of receipts) {
    for (const one of [{ id, payload }, ...(inner === undefined ? [] : [inner])]) {
      const served = await fetch(`${program.urls.gateway}/raw/${one.id}`)
      const bytes = Buffer.from(await served.arrayBuffer())
      if (!bytes.equals(one.payload)) t.fail(`${one.id} (${how}) is not what was sent: ${served.status}`)
    }
    if (how === 'credits' || how === 'parts') spent += BigInt(winc)
    if (how !== 'free' && how !== 'bundle') continue
    t.ok(winc === '0')
    free += item.length
  }
  const left = await fetch(`${program.urls.upload}/v1/account/free?address=${addressOf(signer)}`)
  const { bytesRemaining } = (await left.json()) as { bytesRemaining: number }
  t.equal(bytesRemaining, freeBytes - free, 'free bytes are counted once')
  for (const [{ how }, { id }] of receipts) {
    await eventually(`the block of an item (${how})`, async () => {
      const outcomeOf = await (await fetch(`${program.urls.upload}/v1/tx/${id}/status`)).json()
      const { status } = outcomeOf as { status: string }
      if (status === 'FAILED') throw new Error(`${id} (${how}) failed: ${JSON.stringify(outcomeOf)}`)
      return status === 'FINALIZED'
    })
  }
  await eventually(
    'a balance without what was spent',
    async () => (await balance(program)) === bought - spent,
  )
  const sold = [...receipts.keys()].filter(({ how }) => how === 'usdc').length
  t.equal(facilitator.used.size, sold, 'each payment in USDC has one item')
  const of = (how: Upload['how']): number => [...receipts.keys()].filter((one) => one.how === how).length
  const counts = kinds.map((how) => `${of(how)} ${how}`).join(', ')
  t.comment(
    `${kills} kills: ${receipts.size} receipts (${counts}), each served and permanent; ${spent} winc spent`,
  )
  t.equal(await program.stop(), 0)
  const checked = await sluice(['ledger', 'check'], { DATA_PATH: folder })
  t.equal(checked.code, 0, checked.out + checked.err)
})
