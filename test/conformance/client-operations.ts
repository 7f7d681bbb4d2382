import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The operations of the interface for clients, as each offers them in its own words. Sizes in bytes, amounts in cents. */
export interface ClientOperations {
  getBalance(): Promise<unknown>
  getFreeStatus(): Promise<unknown>
  getPaymentHistory(given: { limit: number; cursor?: string }): Promise<unknown>
  getUploadCosts(bytes: number[]): Promise<unknown>
  getWincForFiat(cents: number, promoCodes?: string[]): Promise<unknown>
  getWincForToken(tokenAmount: number): Promise<unknown>
  getFiatEstimateForBytes(byteCount: number, currency: string): Promise<unknown>
  getTokenPriceForBytes(byteCount: number): Promise<unknown>
  getFiatToAR(currency: string): Promise<unknown>
  getFiatRates(): Promise<unknown>
  getSupportedCurrencies(): Promise<unknown>
  getSupportedCountries(): Promise<unknown>
  createCheckoutSession(cents: number, owner: string): Promise<unknown>
  submitFundTransaction(txId: string): Promise<unknown>
  topUpWithTokens(tokenAmount: number): Promise<unknown>
  upload(data: string | Uint8Array, options?: UploadWords): Promise<unknown>
  uploadFile(path: string, options?: UploadWords): Promise<unknown>
  uploadFolder(path: string, store: string): Promise<unknown>
  uploadSignedDataItem(bytes: Uint8Array): Promise<unknown>
  uploadRawX402Data(data: string): Promise<unknown>
  shareCredits(given: {
    approvedAddress: string
    approvedWincAmount: string
    expiresBySeconds?: number
  }): Promise<unknown>
  revokeCredits(revokedAddress: string): Promise<unknown>
  getCreditShareApprovals(userAddress: string): Promise<unknown>
}

export interface UploadWords {
  readonly tags?: { name: string; value: string }[]
  readonly target?: string
  readonly anchor?: string
  readonly paidBy?: string[]
  readonly isChunked?: boolean
  /** Hears the name of each callback that was called. */
  readonly heard?: Set<string>
}

/** One client at one place, with a wallet of its own. */
export interface Scene {
  readonly client: ClientOperations
  /** Another wallet of the same kind, through the same client. */
  readonly friend: ClientOperations
  readonly address: string
  readonly friendAddress: string
  readonly gateway: string
  readonly folder: string
  /** An item that is signed already, by a key that nobody used before. */
  signedItem(data: string): Promise<Uint8Array>
  /** Mines so many blocks. */
  mine(blocks: number): Promise<void>
  readonly hasTokens: boolean
  /** Ids of top-ups so far. */
  readonly sent: string[]
}

type Step = readonly [name: string, run: (scene: Scene) => Promise<unknown>]

const big = 300_000

async function served({ gateway }: Scene, uploaded: unknown): Promise<Record<string, unknown>> {
  const { id } = uploaded as { id: string }
  const response = await fetch(`${gateway}/raw/${id}`)
  const bytes = Buffer.from(await response.arrayBuffer())
  const query = `{ transaction(id: "${id}") { anchor recipient tags { name value } } }`
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ query }),
  })
  const { data } = (await answer.json()) as {
    data?: { transaction?: { tags: { name: string; value: string }[] } | null }
  }
  const item = data?.transaction
  // What a service signs has the time in it.
  const stated = (item?.tags ?? []).map((tag) =>
    tag.name === 'Upload-Timestamp' ? { ...tag, value: '<time>' } : tag,
  )
  const tags = stated.sort((one, other) => (one.name < other.name ? -1 : 1))
  const found = { status: response.status, sha256: createHash('sha256').update(bytes).digest('hex') }
  return { receipt: uploaded, ...found, item: { ...item, tags } }
}

async function paidByCard(session: unknown): Promise<number> {
  const body = new URLSearchParams({ card: '4242424242424242' })
  const { url } = session as { url: string }
  return (await fetch(url, { method: 'POST', body, redirect: 'manual' })).status
}

const tags = [
  { name: 'Content-Type', value: 'text/plain' },
  { name: 'Größe', value: 'é' },
]

/** Everything that the interface lists, in an order in which each finds what it needs. */
export const steps: readonly Step[] = [
  ['getBalance of a wallet that nobody knows', ({ client }) => client.getBalance()],
  ['getFreeStatus', ({ client }) => client.getFreeStatus()],
  ['getUploadCosts', ({ client }) => client.getUploadCosts([0, 1, 107_520, 1_000_000, 2 ** 32])],
  ['getUploadCosts of less than nothing', ({ client }) => client.getUploadCosts([-1])],
  ['getWincForFiat', ({ client }) => client.getWincForFiat(1000)],
  ['getWincForFiat with a promotion', ({ client }) => client.getWincForFiat(1000, ['HALF'])],
  ['getWincForFiat with one that is not there', ({ client }) => client.getWincForFiat(1000, ['NONE'])],
  ['getWincForFiat of too little', ({ client }) => client.getWincForFiat(1)],
  ['getWincForToken', ({ client }) => client.getWincForToken(1_000_000_000)],
  ['getFiatEstimateForBytes', ({ client }) => client.getFiatEstimateForBytes(2 ** 30, 'usd')],
  [
    'getFiatEstimateForBytes without decimals',
    ({ client }) => client.getFiatEstimateForBytes(2 ** 28, 'jpy'),
  ],
  ['getTokenPriceForBytes', ({ client }) => client.getTokenPriceForBytes(2 ** 30)],
  ['getFiatToAR', ({ client }) => client.getFiatToAR('eur')],
  ['getFiatToAR of no currency', ({ client }) => client.getFiatToAR('xyz')],
  ['getFiatRates', ({ client }) => client.getFiatRates()],
  ['getSupportedCurrencies', ({ client }) => client.getSupportedCurrencies()],
  ['getSupportedCountries', ({ client }) => client.getSupportedCountries()],
  ['upload without credits', ({ client }) => client.upload(Buffer.alloc(big, 'large'))],
  ['createCheckoutSession', async (scene) => scene.client.createCheckoutSession(1000, scene.address)],
  [
    'getBalance after a card',
    async ({ client, address }) => {
      const status = await paidByCard(await client.createCheckoutSession(1000, address))
      return { status, balance: await client.getBalance() }
    },
  ],
  [
    'topUpWithTokens',
    async ({ client, hasTokens, sent }) => {
      if (!hasTokens) return 'not on this chain'
      const stated = await client.topUpWithTokens(1_000_000)
      sent.push((stated as { id: string }).id)
      return stated
    },
  ],
  [
    'submitFundTransaction until it is confirmed',
    async ({ client, hasTokens, mine, sent: [id = ''] }) => {
      if (!hasTokens) return 'not on this chain'
      const { payments } = (await client.getPaymentHistory({ limit: 1 })) as { payments: unknown[] }
      await mine(12)
      return { before: payments, after: await client.submitFundTransaction(id) }
    },
  ],
  [
    'submitFundTransaction of nothing',
    ({ client, hasTokens }) =>
      hasTokens ? client.submitFundTransaction('A'.repeat(43)) : Promise.resolve('not on this chain'),
  ],
  [
    'getPaymentHistory, page by page',
    async ({ client }) => {
      const first = (await client.getPaymentHistory({ limit: 1 })) as { cursor: string | null }
      const rest =
        first.cursor === null ? 'none' : await client.getPaymentHistory({ limit: 5, cursor: first.cursor })
      return { first, rest }
    },
  ],
  ['getPaymentHistory of too many', ({ client }) => client.getPaymentHistory({ limit: 101 })],
  ['upload', async (scene) => served(scene, await scene.client.upload('hello'))],
  [
    'upload with tags, target and anchor',
    async (scene) => {
      const options = { tags, target: 'A'.repeat(43), anchor: 'anchor of thirty-two characters.' }
      return served(scene, await scene.client.upload('tagged', options))
    },
  ],
  ['upload of nothing', async (scene) => served(scene, await scene.client.upload('', { tags }))],
  [
    'upload with too many tags',
    ({ client }) => client.upload('x', { tags: Array.from({ length: 129 }, () => tags[0] as never) }),
  ],
  ['upload paid by credits', async (scene) => served(scene, await scene.client.upload(Buffer.alloc(big, 7)))],
  [
    'uploadFile and its callbacks',
    async (scene) => {
      const path = join(scene.folder, 'file.bin')
      writeFileSync(path, Buffer.alloc(200_000, 'a file'))
      const heard = new Set<string>()
      const uploaded = await scene.client.uploadFile(path, { tags, heard })
      return { ...(await served(scene, uploaded)), heard: [...heard].sort() }
    },
  ],
  [
    'uploadFile in parts',
    async (scene) => {
      const path = join(scene.folder, 'parts.bin')
      writeFileSync(path, Buffer.alloc(12_000_000, 'in parts'))
      return served(scene, await scene.client.uploadFile(path, { tags, isChunked: true }))
    },
  ],
  ['uploadFile of no file', (scene) => scene.client.uploadFile(join(scene.folder, 'none'))],
  [
    'uploadSignedDataItem',
    async (scene) => {
      return served(scene, await scene.client.uploadSignedDataItem(await scene.signedItem('signed before')))
    },
  ],
  [
    'uploadSignedDataItem of a changed one',
    async (scene) => {
      const bytes = await scene.signedItem('signed and changed')
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      return scene.client.uploadSignedDataItem(bytes)
    },
  ],
  [
    'uploadFolder, and again',
    async (scene) => {
      const [path, store] = [join(scene.folder, 'site'), join(scene.folder, 'store')]
      mkdirSync(join(path, 'deep/er'), { recursive: true })
      writeFileSync(join(path, 'index.html'), '<p>hello')
      writeFileSync(join(path, 'empty.txt'), '')
      writeFileSync(join(path, 'deep/a b&c.css'), 'p{}')
      writeFileSync(join(path, 'deep/er/ß.txt'), 'deepest')
      const first = await scene.client.uploadFolder(path, store)
      writeFileSync(join(path, 'index.html'), '<p>changed')
      const second = await scene.client.uploadFolder(path, store)
      const { manifestResponse } = second as { manifestResponse: unknown }
      const { id } = manifestResponse as { id: string }
      const page = await fetch(`${scene.gateway}/${id}/deep/a%20b&c.css`, { redirect: 'follow' })
      return { first, second, page: await page.text(), manifest: (await served(scene, { id })).item }
    },
  ],
  [
    'uploadRawX402Data of little',
    async (scene) => served(scene, await scene.client.uploadRawX402Data('raw and free')),
  ],
  [
    'shareCredits',
    ({ client, friendAddress }) => {
      const amount = { approvedWincAmount: '5000000000', expiresBySeconds: 3600 }
      return client.shareCredits({ approvedAddress: friendAddress, ...amount })
    },
  ],
  ['getCreditShareApprovals', ({ client, address }) => client.getCreditShareApprovals(address)],
  ['getBalance with credits of another', ({ friend }) => friend.getBalance()],
  [
    'upload with credits of another',
    async (scene) => {
      const uploaded = await scene.friend.upload(Buffer.alloc(big, 9), { paidBy: [scene.address] })
      return { ...(await served(scene, uploaded)), approvals: await scene.friend.getBalance() }
    },
  ],
  ['revokeCredits', ({ client, friendAddress }) => client.revokeCredits(friendAddress)],
  ['revokeCredits of none', ({ client, friendAddress }) => client.revokeCredits(friendAddress)],
  [
    'shareCredits of more than there are',
    ({ client, friendAddress }) =>
      client.shareCredits({ approvedAddress: friendAddress, approvedWincAmount: '9'.repeat(25) }),
  ],
  ['getBalance at the end', ({ client }) => client.getBalance()],
]
