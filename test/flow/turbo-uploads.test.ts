/** The upload service as clients of the network use it: their own library, unmodified. */
import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { run } from './running.js'
import { largeFile, withoutTurbo as skip, turboLibrary } from './turbo.js'

const jwk = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

interface Uploaded {
  readonly id: string
  readonly winc: string
}

interface Turbo {
  upload(given: object): Promise<Uploaded>
  uploadFile(given: object): Promise<Uploaded>
}

interface Library {
  readonly TurboFactory: { authenticated(given: object): Turbo }
  readonly EthereumSigner: new (key: string) => unknown
}

t.test('strings and streams go up with keys of two kinds, and are served at once', { skip }, async (t) => {
  const folder = t.testdir()
  const { urls } = await run(t, folder, { DEVNET_SEED: 'false', UPLOAD_FREE_ITEM_BYTES: '5000000' })
  const { TurboFactory, EthereumSigner } = await turboLibrary<Library>()
  const services = {
    uploadServiceConfig: { url: urls.upload },
    paymentServiceConfig: { url: urls.payment },
  }
  const turbo = TurboFactory.authenticated({
    ...services,
    privateKey: JSON.parse(readFileSync(jwk, 'utf8')) as object,
  })
  const served = async (id: string): Promise<Buffer> =>
    Buffer.from(await (await fetch(`${urls.gateway}/raw/${id}`)).arrayBuffer())

  const text = await turbo.upload({ data: 'a string' })
  t.equal(text.winc, '0')
  t.equal((await served(text.id)).toString(), 'a string')

  const bytes = Buffer.alloc(3_000_000, 'a file ')
  const path = `${folder}/large.bin`
  writeFileSync(path, bytes)
  const file = await turbo.uploadFile({
    fileStreamFactory: () => createReadStream(path),
    fileSizeFactory: () => bytes.length,
  })
  t.ok((await served(file.id)).equals(bytes))

  const signer = new EthereumSigner('07'.repeat(32))
  const other = TurboFactory.authenticated({ ...services, signer, token: 'ethereum' })
  const ethereum = await other.upload({ data: 'of another kind' })
  t.equal((await served(ethereum.id)).toString(), 'of another kind')
})

t.test('60 MB go up in parts, ten at once', { skip }, async (t) => {
  const folder = t.testdir()
  const free = { UPLOAD_FREE_ITEM_BYTES: '100000000', UPLOAD_FREE_WALLET_BYTES: '200000000' }
  const { urls } = await run(t, folder, { DEVNET_SEED: 'false', ...free })
  const { TurboFactory } = await turboLibrary<Library>()
  const turbo = TurboFactory.authenticated({
    uploadServiceConfig: { url: urls.upload },
    paymentServiceConfig: { url: urls.payment },
    privateKey: JSON.parse(readFileSync(jwk, 'utf8')) as object,
  })
  const { bytes, factories } = largeFile(folder, 60_000_000)
  const file = await turbo.uploadFile({
    ...factories,
    chunkingMode: 'force',
    maxChunkConcurrency: 10,
  })
  t.equal(file.winc, '0')
  const answer = await fetch(`${urls.gateway}/raw/${file.id}`)
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes))
})
