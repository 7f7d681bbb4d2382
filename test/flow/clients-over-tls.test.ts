/** Clients of others against the listeners of HTTPS, with an authority that they are told of as operators' users are not. */
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { authority, signed } from '../certificates/made.js'
import { isSigned, type Receipt } from './receipts.js'
import { run, seeded } from './running.js'
import { withoutTurbo } from './turbo.js'

const folder = t.testdir()
const at = (name: string): string => join(folder, name)
const root = authority(at('root'), 'root')
const own = signed(at('own'), root, { names: ['localhost', '*.localhost'] })
writeFileSync(at('own.crt'), own.cert)
writeFileSync(at('own.key'), own.key)
const ca = at('root/root.crt')
const program = await run(t, at('data'), {
  ...seeded,
  INTERFACE_VOCABULARY: 'ar-io',
  TLS_PORT: '0',
  UPLOAD_TLS_PORT: '0',
  PAYMENT_TLS_PORT: '0',
  TLS_CERT_FILE: at('own.crt'),
  TLS_KEY_FILE: at('own.key'),
  UPLOAD_FREE_ITEM_BYTES: '100000000',
  UPLOAD_FREE_WALLET_BYTES: '200000000',
})
const named = (url = ''): string => `https://localhost:${new URL(url).port}`
const { https = '', uploadHttps = '', paymentHttps = '', gateway = '' } = program.urls
const [site, uploads, payments] = [https, uploadHttps, paymentHttps].map(named) as [string, string, string]
const served = async (id: string): Promise<Buffer> =>
  Buffer.from(await (await fetch(`${gateway}/raw/${id}`)).arrayBuffer())

/** Not `execFileSync`: the program needs this process, which keeps its threads from waiting (`run`). */
const ran = promisify(execFile)

/** What a program for Node prints as JSON. It trusts the authority by its environment, which is read at the start. */
async function outputOf<Output>(code: string, environment: Record<string, string>): Promise<Output> {
  const words = ['--input-type=module', '-e', code]
  const { stdout } = await ran(process.execPath, words, {
    env: { PATH: process.env.PATH ?? '', NODE_EXTRA_CA_CERTS: ca, ...environment },
    maxBuffer: 2 ** 24,
  })
  // Some libraries write lines of their own before.
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Output
}

t.test('the library of the network uploads and asks what it has', { skip: withoutTurbo }, async (t) => {
  const bytes = Buffer.alloc(6_000_000, 'over TLS in parts ')
  writeFileSync(at('large.bin'), bytes)
  const code = `
    import { createReadStream, readFileSync } from 'node:fs'
    const { TurboFactory } = await import(process.env.LIBRARY)
    const turbo = TurboFactory.authenticated({
      uploadServiceConfig: { url: process.env.UPLOADS },
      paymentServiceConfig: { url: process.env.PAYMENTS },
      privateKey: JSON.parse(readFileSync(process.env.WALLET, 'utf8')),
    })
    const small = await turbo.upload({ data: 'over TLS' })
    const file = {
      fileStreamFactory: () => createReadStream(process.env.FILE),
      fileSizeFactory: () => ${bytes.length},
    }
    const whole = await turbo.uploadFile({ ...file, chunkingMode: 'disabled' })
    const parts = await turbo.uploadFile({ ...file, chunkingMode: 'force', chunkByteCount: 5242880 })
    const balance = await turbo.getBalance()
    const [cost] = await turbo.getUploadCosts({ bytes: [1000000000] })
    process.stdout.write(JSON.stringify({ small, whole, parts, balance, cost }))`
  const found = await outputOf<{
    small: Receipt
    whole: Receipt
    parts: Receipt
    balance: { winc: string }
    cost: { winc: string }
  }>(code, {
    LIBRARY: new URL('../clients/turbo.js', import.meta.url).href,
    WALLET: fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url)),
    UPLOADS: uploads,
    PAYMENTS: payments,
    FILE: at('large.bin'),
  })
  for (const receipt of [found.small, found.whole, found.parts]) t.ok(isSigned(receipt))
  t.equal(String(await served(found.small.id)), 'over TLS')
  for (const { id } of [found.whole, found.parts]) t.ok((await served(id)).equals(bytes), 'byte for byte')
  t.equal(found.balance.winc, '0')
  t.ok(BigInt(found.cost.winc) > 0n)
})

const wayfinder = fileURLToPath(
  new URL('../../../test/clients/node_modules/@ar.io/wayfinder-core/dist/index.js', import.meta.url),
)
const withoutWayfinder = existsSync(wayfinder) ? false : 'install test/clients to run it'

t.test('wayfinder reads a transaction by chunks', { skip: withoutWayfinder }, async (t) => {
  const { large = '' } = program.examples
  const code = `
    import { createHash } from 'node:crypto'
    const { ChunkDataRetrievalStrategy } = await import(process.env.LIBRARY)
    const gateway = new URL(process.env.SITE)
    const requestUrl = new URL('/raw/${large}', gateway)
    const answer = await new ChunkDataRetrievalStrategy().getData({ gateway, requestUrl, headers: {} })
    const bytes = Buffer.from(await answer.arrayBuffer())
    process.stdout.write(JSON.stringify(createHash('sha256').update(bytes).digest('hex')))`
  const digest = await outputOf<string>(code, { LIBRARY: pathToFileURL(wayfinder).href, SITE: site })
  t.equal(
    digest,
    createHash('sha256')
      .update(await served(large))
      .digest('hex'),
  )
})

function absent(command: string): string | false {
  return spawnSync(command, ['--version']).error === undefined ? false : `${command} is not installed`
}

t.test('wget, from the start and from the middle on', { skip: absent('wget') }, async (t) => {
  const { large = '' } = program.examples
  const bytes = await served(large)
  const out = at('by-wget')
  const words = ['-q', '--no-config', `--ca-certificate=${ca}`, '-O', out, `${site}/raw/${large}`]
  await ran('wget', words)
  t.ok(readFileSync(out).equals(bytes))
  writeFileSync(out, bytes.subarray(0, 1_234_567))
  await ran('wget', ['-c', ...words])
  t.ok(readFileSync(out).equals(bytes), 'by a range')
  const untrusting = words.filter((word) => !word.startsWith('--ca'))
  await t.rejects(ran('wget', untrusting), 'it looks at the certificate')
})

t.test('aria2 over several connections', { skip: absent('aria2c') }, async (t) => {
  const { large = '' } = program.examples
  const words = [
    '-q',
    '--no-conf',
    `--ca-certificate=${ca}`,
    '-x4',
    '-s4',
    '-k1M',
    '-d',
    folder,
    '-o',
    'by-aria2',
  ]
  await ran('aria2c', [...words, `${site}/raw/${large}`])
  t.ok(readFileSync(at('by-aria2')).equals(await served(large)))
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
