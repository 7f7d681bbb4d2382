/**
 * The same script of all operations by our client and by the one that the network uses, against the program's own services.
 * A table of both results is among the comments of the output, and with `OPERATIONS_TABLE=FILE` in that file (Markdown); where
 * they differ the test fails.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SendTokens } from '../../src/client/funding.js'
import { signedItem } from '../../src/client/prepare.js'
import { clientOf } from '../devnet/posting.js'
import { type Running, run, sluice } from '../flow/running.js'
import { miningTransfers, quickTransfers, withoutTurbo as skip, turboLibrary } from '../flow/turbo.js'
import { type ClientOperations, type Scene, steps } from './client-operations.js'
import { ourOperations } from './our-client.js'
import { compared, inShort, type Outcome, outcomeOf, settled } from './side-by-side.js'
import { type TurboLibrary, turboOperations } from './turbo-client.js'
import { type NewWallet, newWallet, type WalletKind, walletKinds } from './wallets.js'

const settings = {
  DEVNET_SEED: 'false',
  DEVNET_BLOCK_MS: '0',
  PAYMENT_ARWEAVE_CONFIRMATIONS: '10',
  PAYMENT_RECHECK_SECONDS: '1',
}

/** What one client differs in by design, and why. */
const known: Readonly<Record<string, string>> = {
  '/value/reward':
    'the fee of the transfer is known to the wallet that sends it, which is not part of our client',
}

/** The table's rows: a step, the kind of key, both results, and whether they are the same. */
const rows: string[][] = []

/** Results of other people's texts stand between the bars of a table. */
function cell(text: string): string {
  return `\`${text.replaceAll('|', '\\|').replaceAll('`', "'")}\``
}

function tableText(): string {
  const lines = rows.map(([name = '', kind = '', one = '', two = '', same = '']) => {
    return `| ${name} | ${kind} | ${cell(one)} | ${cell(two)} | ${same} |`
  })
  const head = ['| Step | Key | This client | turbo-sdk 1.43 | |', '| - | - | - | - | - |']
  return `${[...head, ...lines].join('\n')}\n`
}

interface Served {
  readonly upload: string
  readonly payment: string
  readonly gateway: string
  readonly devnet: string
}

/** Sends winston on the embedded chain, and mines until an index has it. */
function sendingBy(devnet: string, wallet: NewWallet): SendTokens {
  return async ({ to, amount }) => {
    const arweave = clientOf(devnet)
    const key = wallet.privateKey as Parameters<typeof arweave.createTransaction>[1]
    const sent = await arweave.createTransaction({ target: to, quantity: String(amount) }, key)
    await arweave.transactions.sign(sent, key)
    await arweave.transactions.post(sent)
    await fetch(`${devnet}/mine/1`)
    return sent.id
  }
}

async function sceneOf(
  places: Served,
  folder: string,
  kind: WalletKind,
  operations: (wallet: NewWallet) => ClientOperations,
): Promise<Scene> {
  const [own, other] = [await newWallet(kind), await newWallet(kind)]
  if (kind === 'arweave') await fetch(`${places.devnet}/mint/${own.signer.address}/1000000000000`)
  mkdirSync(folder, { recursive: true })
  return {
    client: operations(own),
    friend: operations(other),
    address: own.signer.address,
    friendAddress: other.signer.address,
    gateway: places.gateway,
    folder,
    hasTokens: kind === 'arweave',
    sent: [],
    async signedItem(data) {
      const { signer } = await newWallet('ethereum')
      return (await signedItem(Buffer.from(data), { tags: [] }, signer)).bytes
    },
    mine: async (blocks) => void (await fetch(`${places.devnet}/mine/${blocks}`)),
  }
}

/** Runs all steps by one client. While it tops up, blocks are mined as the library of the network expects it. */
async function ran(scene: Scene, devnet: string): Promise<Map<string, Outcome & { words?: string }>> {
  const names = new Map([
    [scene.address, '<own address>'],
    [scene.friendAddress, '<address of a friend>'],
  ])
  const outcomes = new Map<string, Outcome & { words?: string }>()
  for (const [name, step] of steps) {
    const isWaiting = name.includes('topUp')
    const mined = isWaiting && scene.hasTokens ? miningTransfers(devnet) : undefined
    const outcome = await outcomeOf(() => step(scene))
    await mined?.()
    outcomes.set(name, 'value' in outcome ? { value: settled(outcome.value, names) } : outcome)
  }
  return outcomes
}

function placesOf({ urls }: Running): Served {
  const { upload = '', payment = '', gateway = '', devnet = '' } = urls
  return { upload, payment, gateway, devnet }
}

async function beside(t: Test, kind: WalletKind, places: Served): Promise<void> {
  const library = await turboLibrary<TurboLibrary>()
  const folder = t.testdir()
  const tokenTools = await quickTransfers(places.gateway)
  const own = await sceneOf(places, join(folder, 'ours'), kind, (wallet) =>
    ourOperations(places, wallet.signer, sendingBy(places.devnet, wallet)),
  )
  const other = await sceneOf(places, join(folder, 'theirs'), kind, (wallet) =>
    turboOperations(library, places, {
      privateKey: wallet.privateKey,
      address: wallet.signer.address,
      token: kind,
      ...(kind === 'arweave' && { tokenTools }),
    }),
  )
  const ours = await ran(own, places.devnet)
  const theirs = await ran(other, places.devnet)
  for (const [name] of steps) {
    const [one, two] = [ours.get(name), theirs.get(name)]
    if (one === undefined || two === undefined) throw new Error(`${name} was not run`)
    const { different, more } = compared(one, { ...two, ...('words' in two && { words: one.words }) })
    const unexpected = different.filter((line) => known[line.split(':')[0] ?? ''] === undefined)
    const isSame = unexpected.length === 0
    rows.push([name, kind, inShort(one), inShort(two), isSame ? 'same' : 'different'])
    const columns = [name.padEnd(48), inShort(one).padEnd(62), inShort(two).padEnd(62)]
    t.comment(`${columns.join(' | ')} | ${isSame ? 'same' : 'DIFFERENT'}`)
    if (more.length > 0) t.comment(`    ours has more: ${more.join(' ')}`)
    t.strictSame(unexpected, [], `${kind}: ${name}`)
  }
}

t.test('all operations give the same by both clients, with keys of three kinds', { skip }, async (t) => {
  const folder = t.testdir()
  const running = await run(t, join(folder, 'data'), settings)
  const places = placesOf(running)
  const promotion = ['promotion', 'HALF', '--percent', '50', '--payment', places.payment]
  const declared = await sluice(promotion, { DATA_PATH: join(folder, 'data') })
  t.equal(declared.code, 0, declared.err)
  for (const kind of walletKinds) await t.test(kind, (t) => beside(t, kind, places))
  const { OPERATIONS_TABLE: file } = process.env
  if (file !== undefined) writeFileSync(file, tableText())
})
