import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Arweave from 'arweave'
import type { JWKInterface } from 'arweave/node/lib/wallet.js'
import type { Test } from 'tap'
import { Devnet } from '../../src/devnet/devnet.js'
import type { DevnetOptions } from '../../src/devnet/devnet-options.js'
import { type Id, parseId } from '../../src/format/id.js'
import { fixtureJson } from '../fixture-file.js'

// The package is CommonJS with its class below `default`.
const { init } = (Arweave as unknown as { default?: typeof Arweave }).default ?? Arweave

export type Client = ReturnType<typeof init>

/** The public client library, talking to this node. */
export function clientOf(url: string): Client {
  const { hostname: host, port } = new URL(url)
  return init({ host, port, protocol: 'http' })
}

/** A folder that goes with the test. */
export function folderOf(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'devnet-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A running node with a chain of its own, gone with the test. */
export async function devnetOf(t: Test, options: Partial<DevnetOptions> = {}): Promise<Devnet> {
  const dataPath = options.dataPath ?? folderOf(t)
  const devnet = await Devnet.start({ host: '127.0.0.1', port: 0, blockMs: 0, ...options, dataPath })
  t.teardown(() => devnet.stop())
  return devnet
}

export interface Payer {
  readonly client: Client
  readonly wallet: JWKInterface
  readonly address: string
}

/** A wallet that is always the same: making a key of 4096 bits takes seconds. */
export const knownWallet = (): JWKInterface => fixtureJson<JWKInterface>('rsa-4096.jwk.json')

/** The known wallet, with much winston on this node. */
export async function payerOf(devnet: Devnet): Promise<Payer> {
  const client = clientOf(devnet.url)
  const wallet = knownWallet()
  const address = await client.wallets.jwkToAddress(wallet)
  devnet.mint(address, 10n ** 18n)
  return { client, wallet, address }
}

/** A signed transaction, not posted; `change` works on it before it is signed. */
export async function signed(
  { client, wallet }: Payer,
  attributes: {
    data?: string | Uint8Array
    target?: string
    quantity?: string
    reward?: string
    last_tx?: string
  },
  change: (transaction: Awaited<ReturnType<Client['createTransaction']>>) => void = () => undefined,
) {
  const transaction = await client.createTransaction(attributes, wallet)
  change(transaction)
  await client.transactions.sign(transaction, wallet)
  return transaction
}

/** Signs data as one transaction and posts it in chunks; not mined. Resolves with its id. */
export async function postedBy(
  payer: Payer,
  data: Uint8Array,
  tags: Readonly<Record<string, string>> = {},
): Promise<Id> {
  const transaction = await signed(payer, { data }, (one) => {
    for (const [name, value] of Object.entries(tags)) one.addTag(name, value)
  })
  const uploader = await payer.client.transactions.getUploader(transaction)
  while (!uploader.isComplete) await uploader.uploadChunk()
  const id = parseId(transaction.id)
  if (id === undefined) throw new Error('no id')
  return id
}

/** Posts data as one transaction of format 1, whose signature covers the data itself; not mined. Resolves with its id. */
export async function postedOld({ client, wallet }: Payer, url: string, data: Uint8Array): Promise<Id> {
  const transaction = await client.createTransaction({ data }, wallet)
  Object.assign(transaction, { format: 1, data_root: '', data_size: String(data.length) })
  await client.transactions.sign(transaction, wallet)
  const body = JSON.stringify({ ...transaction.toJSON(), data_root: '' })
  const answer = await fetch(`${url}/tx`, { method: 'POST', body })
  const id = parseId(transaction.id)
  if (answer.status !== 200 || id === undefined) throw new Error(`${answer.status} ${await answer.text()}`)
  return id
}

/** The JSON behind a URL, whatever its status. */
export async function jsonOf<T = Record<string, unknown>>(url: string, init?: RequestInit): Promise<T> {
  return (await (await fetch(url, init)).json()) as T
}
