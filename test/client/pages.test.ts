/** The pages of the client: each snippet runs as it stands, against services on this machine. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { addressOfOwner, signerOfArweave } from '../../src/client/signer.js'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'

const pages = fileURLToPath(new URL('../../../docs/client', import.meta.url))
const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

/** Snippets of a page that run in Node; those for browsers are marked. */
function snippetsOf(text: string): string[] {
  return [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
}

/** An operation of the interface has a page of its own, named by it. */
const operations = [
  'getBalance',
  'getFreeStatus',
  'getPaymentHistory',
  'getUploadCosts',
  'getWincForFiat',
  'getWincForToken',
  'getFiatEstimateForBytes',
  'getTokenPriceForBytes',
  'getFiatToAR',
  'getFiatRates',
  'getSupportedCurrencies',
  'getSupportedCountries',
  'createCheckoutSession',
  'upload',
  'uploadFile',
  'uploadFolder',
  'uploadSignedDataItem',
  'uploadRawX402Data',
  'topUpWithTokens',
  'submitFundTransaction',
  'shareCredits',
  'revokeCredits',
  'getCreditShareApprovals',
]

t.test('every operation has a page, and every snippet runs', async (t) => {
  const titles = new Map<string, string>()
  for (const name of readdirSync(pages)) {
    const text = readFileSync(join(pages, name), 'utf8')
    titles.set(/^# (.*)$/m.exec(text)?.[1] ?? name, name)
    for (const [, link = ''] of text.matchAll(/\]\(([\w-]+\.md)/g))
      t.ok(readdirSync(pages).includes(link), `${name} leads to ${link}`)
  }
  for (const operation of operations) t.ok(titles.has(operation), `a page for ${operation}`)

  const folder = t.testdir({
    'photo.jpg': 'no picture',
    site: { 'index.html': '<p>hello', 'style.css': 'p {}' },
  })
  cpSync(wallet, join(folder, 'wallet.json'))
  const settings = { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '1000', UPLOAD_FREE_WALLET_BYTES: '50000000' }
  const running = await run(t, join(folder, 'data'), settings)
  const { upload, payment = '', gateway = '', devnet = '' } = running.urls
  const local = { uploadUrl: upload, paymentUrl: payment, gatewayUrls: [gateway] }

  const signer = await signerOfArweave(knownWallet())
  const owner = addressOfOwner(signer.owner)
  await fetch(`${devnet}/mint/${owner}/1000000000000000`)
  const session = await fetch(`${payment}/v1/top-up/checkout-session/${owner}/usd/1000`)
  const { paymentSession } = (await session.json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
  const arweave = clientOf(devnet)
  const { addresses } = (await (await fetch(`${payment}/v1/info`)).json()) as {
    addresses: Record<string, string>
  }
  const transfer = await arweave.createTransaction(
    { target: addresses.arweave ?? '', quantity: '1000000' },
    knownWallet(),
  )
  await arweave.transactions.sign(transfer, knownWallet())
  await arweave.transactions.post(transfer)
  await eventually(
    'the transfer is in a block',
    async () => (await fetch(`${devnet}/tx/${transfer.id}/status`)).status === 200,
  )

  let count = 0
  const works = [...titles.values()]
    .sort()
    .flatMap((name) =>
      snippetsOf(readFileSync(join(pages, name), 'utf8')).map((code, at) => ({ name, code, at })),
    )
  mkdirSync(join(folder, 'run'))
  const waiting = works.values()
  const worker = async (): Promise<void> => {
    for (const { name, code, at } of waiting) {
      const path = join(folder, `${name}-${at}.mjs`)
      writeFileSync(path, code.replaceAll('networks.local', JSON.stringify(local)))
      const line = ['--unhandled-rejections=strict', path, transfer.id]
      const environment = { PATH: process.env.PATH ?? '' }
      const done = await promisify(execFile)(process.execPath, line, { cwd: folder, env: environment }).catch(
        (error: Error & { stderr?: string }) => ({
          stdout: '',
          stderr: `${error.message}${error.stderr ?? ''}`,
        }),
      )
      t.ok(done.stdout.length > 0, `${name} says something: ${done.stderr}`)
      count++
    }
  }
  await Promise.all([worker(), worker()])
  t.ok(count > 28, `${count} snippets`)
})
