/** Uploads that top up what they lack, by our client and by the one that the network uses, on a chain of this machine. */
import t, { type Test } from 'tap'
import { type Hex, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { SluiceClient } from '../../src/client/client.js'
import type { FundingMode, SendTokens } from '../../src/client/funding.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { anvilPath, type LocalChain, startChain } from '../admission/anvil.js'
import { run } from '../flow/running.js'
import { turboLibrary, withoutTurbo } from '../flow/turbo.js'
import type { Places } from './our-client.js'
import { compared, inShort, outcomeOf, settled } from './side-by-side.js'
import type { TurboLibrary } from './turbo-client.js'
import { newWallet } from './wallets.js'

const anvil = anvilPath()
const skip = withoutTurbo || (anvil === undefined && 'anvil is not installed')

/** An upload with on-demand funding, and a cap or none. */
type FundedUpload = (data: Uint8Array, cap?: bigint) => Promise<Funded>

interface Funded {
  readonly winc: string
  readonly cryptoFundResult?: Readonly<Record<string, unknown>>
}

/** Ether of the key, sent by another library, as a caller of the client would. */
function sendingBy(chain: LocalChain, key: Hex): SendTokens {
  return async ({ to, amount, creditDestination }) => {
    const wallet = chain.wallet(privateKeyToAccount(key))
    const note = creditDestination && stringToHex(`turboCreditDestinationAddress=${creditDestination}`)
    const hash = await wallet.sendTransaction({ to: to as Hex, value: amount, ...(note && { data: note }) })
    await wallet.waitForTransactionReceipt({ hash })
    return hash
  }
}

async function ourUpload(places: Places, chain: LocalChain, key: Hex): Promise<FundedUpload> {
  const signer = await signerOfEthereum(key, 'base-eth')
  const { upload: uploadUrl, payment: paymentUrl, gateway } = places
  const client = new SluiceClient({ uploadUrl, paymentUrl, gatewayUrls: [gateway], signer })
  return (data, cap) => {
    const sendTokens = sendingBy(chain, key)
    const limit = cap === undefined ? {} : { maxTokenAmount: cap }
    const fundingMode: FundingMode = { mode: 'on-demand', sendTokens, ...limit }
    return client.upload({ data, fundingMode }).result as unknown as Promise<Funded>
  }
}

function theirUpload(library: TurboLibrary, places: Places, chain: LocalChain, key: Hex): FundedUpload {
  const turbo = library.TurboFactory.authenticated({
    privateKey: key,
    token: 'base-eth',
    gatewayUrl: chain.url,
    uploadServiceConfig: { url: places.upload },
    paymentServiceConfig: { url: places.payment },
  })
  return (data, cap) => {
    const limit = cap === undefined ? {} : { maxTokenAmount: String(cap) }
    const fundingMode = new library.OnDemandFunding({ topUpBufferMultiplier: 1.1, ...limit })
    return turbo.upload?.call(turbo, { data, fundingMode }) as Promise<Funded>
  }
}

/** What is told of a top-up; how much is in it depends on how each reads a price that is not linear. */
function fundedOutcome({ winc, cryptoFundResult: fund }: Funded): object {
  const top = fund && { status: fund.status, token: fund.token, isPaid: Number(fund.quantity) > 0 }
  return { winc, cryptoFundResult: top }
}

async function steps(t: Test, chain: LocalChain, key: Hex, upload: FundedUpload): Promise<unknown[]> {
  const account = await chain.account({ key, ether: 10n ** 18n })
  const held = (): Promise<bigint> => chain.wallet(account).getBalance({ address: account.address })
  const before = await held()
  const capped = await outcomeOf(() => upload(Buffer.alloc(400_000, 1), 1n))
  t.equal(await held(), before, 'nothing was sent above the cap')
  const paid = fundedOutcome(await upload(Buffer.alloc(400_000, 2)))
  t.ok((await held()) < before)
  const rest = await held()
  const second = fundedOutcome(await upload(Buffer.alloc(1000, 3)))
  t.ok((await held()) <= rest)
  return ['refused' in capped ? 'refused' : capped, paid, { winc: (second as Funded).winc }]
}

t.test('on-demand top-ups pay what an upload lacks', { skip }, async (t) => {
  const chain = await startChain(t, anvil ?? '', 'base')
  const owner = await chain.account()
  const { urls } = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '0',
    PAYMENT_BASE_RPC_URL: chain.url,
    PAYMENT_ETHEREUM_ADDRESS: owner.address,
    PAYMENT_BASE_CONFIRMATIONS: '1',
  })
  const { upload = '', payment = '', gateway = '' } = urls
  const places = { upload, payment, gateway }
  const library = await turboLibrary<TurboLibrary>()
  const [one, two] = [(await newWallet('ethereum')).privateKey, (await newWallet('ethereum')).privateKey]
  const ours = await steps(t, chain, one as Hex, await ourUpload(places, chain, one as Hex))
  const theirs = await steps(t, chain, two as Hex, theirUpload(library, places, chain, two as Hex))
  for (const [at, name] of ['above the cap', 'of what is lacking', 'of what is free'].entries()) {
    const columns = [ours[at], theirs[at]].map((value) => inShort({ value }).padEnd(90))
    t.comment(`on-demand ${name.padEnd(22)} | ${columns.join(' | ')}`)
  }
  t.strictSame(compared(settled(ours, new Map()), settled(theirs, new Map())).different, [])
})
