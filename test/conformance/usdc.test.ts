/**
 * Uploads that are paid in USDC (x402), by our client in both versions of the protocol and by the one that the network uses: the
 * same receipts for the same money, on a chain of this machine.
 */
import { createHash } from 'node:crypto'
import { createReadStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { SluiceClient } from '../../src/client/client.js'
import type { FundingMode } from '../../src/client/funding.js'
import { fileSource } from '../../src/client/node/files.js'
import type { FetchLike } from '../../src/client/service.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { anvilPath, type LocalChain, startChain } from '../admission/anvil.js'
import { stockFacilitator } from '../admission/stock-facilitator.js'
import { run } from '../flow/running.js'
import { turboLibrary, withoutTurbo } from '../flow/turbo.js'
import type { Places } from './our-client.js'
import { compared, inShort, type Outcome, outcomeOf, settled } from './side-by-side.js'
import type { TurboLibrary } from './turbo-client.js'

const anvil = anvilPath()
const skip = withoutTurbo || (anvil === undefined && 'anvil is not installed')

/** What is paid for in USDC. Caps in millionths. */
interface Paying {
  signed(data: Uint8Array, cap: number): Promise<unknown>
  inParts(path: string, cap: number): Promise<unknown>
  raw(data: Uint8Array, cap: number): Promise<unknown>
}

/** Services that speak the first version of the protocol only: their offer is in the body. */
const firstVersionOnly: FetchLike = async (url, init) => {
  const response = await fetch(url, init)
  if (response.status !== 402) return response
  const headers = new Headers(response.headers)
  headers.delete('payment-required')
  return new Response(await response.text(), { status: 402, headers })
}

async function ourPaying(places: Places, key: Hex, fetcher: FetchLike): Promise<Paying> {
  const signer = await signerOfEthereum(key, 'base-usdc')
  const { upload: uploadUrl, payment: paymentUrl, gateway } = places
  const client = new SluiceClient({ uploadUrl, paymentUrl, gatewayUrls: [gateway], signer, fetch: fetcher })
  const funding = (cap: number): FundingMode => ({ mode: 'x402', maxMUSDCAmount: BigInt(cap) })
  return {
    signed: (data, cap) => client.upload({ data, fundingMode: funding(cap) }).result,
    inParts: async (path, cap) =>
      client.uploadFile({ file: await fileSource(path), fundingMode: funding(cap) }).result,
    raw: (data, cap) => client.uploadRawX402Data({ data, maxMUSDCAmount: BigInt(cap) }),
  }
}

function theirPaying({ TurboFactory, X402Funding }: TurboLibrary, places: Places, key: Hex): Paying {
  const turbo = TurboFactory.authenticated({
    privateKey: key,
    token: 'base-usdc',
    // It tries an upload five times, with longer and longer pauses, whatever the error is; what is refused here stays refused.
    uploadServiceConfig: {
      url: places.upload,
      retryConfig: { retries: 2, retryDelay: () => 50, onRetry: () => undefined },
    },
    paymentServiceConfig: { url: places.payment },
  })
  const call = (name: string, given: object): Promise<unknown> => turbo[name]?.call(turbo, given) as never
  const funding = (cap: number): object => new X402Funding({ maxMUSDCAmount: cap })
  return {
    signed: (data, cap) => call('upload', { data: Buffer.from(data), fundingMode: funding(cap) }),
    inParts: (path, cap) => {
      const factories = { fileStreamFactory: () => createReadStream(path), fileSizeFactory: () => partsBytes }
      return call('uploadFile', { ...factories, fundingMode: funding(cap) })
    },
    raw: (data, cap) => call('uploadRawX402Data', { data: Buffer.from(data), maxMUSDCAmount: cap }),
  }
}

const partsBytes = 11_000_000
const enough = 20_000_000

const steps: readonly (readonly [string, (paying: Paying, folder: string) => Promise<unknown>])[] = [
  ['a signed item', (paying) => paying.signed(Buffer.alloc(200_000, 'signed'), enough)],
  ['a signed item above the cap', (paying) => paying.signed(Buffer.alloc(200_000, 'cap'), 1)],
  [
    'a signed item in parts',
    (paying, folder) => {
      const path = join(folder, 'parts.bin')
      writeFileSync(path, Buffer.alloc(partsBytes, 'parts'))
      return paying.inParts(path, enough)
    },
  ],
  ['raw bytes', (paying) => paying.raw(Buffer.alloc(150_000, 'raw'), enough)],
  ['raw bytes above the cap', (paying) => paying.raw(Buffer.alloc(150_000, 'more'), 1)],
]

/** What the library of the network fails in, and why. */
const theirFaults: Readonly<Record<string, string>> = {
  'a signed item':
    'it sends a stream, which it cannot send a second time with the payment; nothing is paid then',
}

/** Fields of a receipt that both must have; what a service adds is its own. */
function uploadOutcome(uploaded: unknown): object {
  const { id, owner, winc, dataCaches, fastFinalityIndexes } = uploaded as Record<string, unknown>
  return { id, owner, winc, dataCaches, fastFinalityIndexes }
}

async function ran(
  paying: Paying,
  places: Places,
  folder: string,
  held: () => Promise<bigint>,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>()
  for (const [name, step] of steps) {
    const before = await held()
    const outcome = await outcomeOf(() => step(paying, folder))
    const microUsdc = String(before - (await held()))
    if ('refused' in outcome) {
      outcomes.set(name, { value: { refused: true, microUsdc } })
      continue
    }
    const { id } = outcome.value as { id: string }
    const bytes = await (await fetch(`${places.gateway}/raw/${id}`)).arrayBuffer()
    const sha256 = createHash('sha256').update(new Uint8Array(bytes)).digest('hex')
    outcomes.set(name, { value: settled({ ...uploadOutcome(outcome.value), microUsdc, sha256 }, new Map()) })
  }
  return outcomes
}

async function richKey(chain: LocalChain): Promise<{ key: Hex; held: () => Promise<bigint> }> {
  const key = generatePrivateKey()
  const { address } = await chain.account({ key, units: 100_000_000n })
  return { key, held: () => chain.balance(address) }
}

async function beside(t: Test, chain: LocalChain, places: Places): Promise<void> {
  const library = await turboLibrary<TurboLibrary>()
  const columns: Map<string, Outcome>[] = []
  for (const make of [
    (key: Hex) => ourPaying(places, key, (url, init) => fetch(url, init)),
    (key: Hex) => ourPaying(places, key, firstVersionOnly),
    async (key: Hex) => theirPaying(library, places, key),
  ]) {
    const { key, held } = await richKey(chain)
    columns.push(await ran(await make(key), places, t.testdir(), held))
  }
  const [second, first, theirs] = columns
  for (const [name] of steps) {
    const shown = columns.map((column) => inShort(column.get(name) as Outcome).padEnd(62))
    t.comment(`${name.padEnd(28)} | ${shown.join(' | ')}`)
    const expected = theirFaults[name] === undefined ? theirs?.get(name) : second?.get(name)
    if (theirFaults[name] !== undefined) {
      t.comment(`    the other client: ${theirFaults[name]}`)
      t.match(theirs?.get(name), { value: { refused: true, microUsdc: '0' } })
      t.match(expected, { value: { sha256: /^[0-9a-f]{64}$/, microUsdc: /^[1-9]/ } })
    }
    for (const [what, ours] of [
      ['version 2', second],
      ['version 1', first],
    ] as const)
      t.strictSame(compared(ours?.get(name), expected).different, [], `${name}, ${what}`)
  }
}

t.test('paid in USDC, both clients get the same for the same money', { skip }, async (t) => {
  const chain = await startChain(t, anvil ?? '', 'base')
  const facilitator = await stockFacilitator(t, chain, await chain.account({ ether: 10n ** 19n }))
  const payee = (await chain.account()).address
  const { urls } = await run(t, join(t.testdir(), 'data'), {
    DEVNET_SEED: 'false',
    UPLOAD_FREE_ITEM_BYTES: '3000',
    X_402_USDC_NETWORK: 'base',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_RPC_URL: chain.url,
    PAYMENT_BASE_CONFIRMATIONS: '1',
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
  })
  const { upload = '', payment = '', gateway = '' } = urls
  await t.test('side by side', (t) => beside(t, chain, { upload, payment, gateway }))
})
