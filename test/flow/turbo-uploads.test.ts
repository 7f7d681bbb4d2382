/** The upload service as clients of the network use it: their own library, unmodified. */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ArweaveSigner, createData } from 'arbundles'
import t from 'tap'
import { encodeBase58 } from '../../src/format/base58.js'
import { ed25519Key } from '../../src/proof/sign.js'
import { knownWallet } from '../devnet/posting.js'
import { isSigned, type Receipt } from './receipts.js'
import { run } from './running.js'
import { largeFile, withoutTurbo as skip, turboLibrary } from './turbo.js'

const jwk = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

interface UploadedFolder {
  readonly fileResponses: readonly Receipt[]
  readonly manifest: { readonly paths: Readonly<Record<string, { id: string }>> }
  readonly manifestResponse: Receipt
  readonly folderIndexSummary: Readonly<Record<string, number>>
}

interface Turbo {
  readonly signer: { getPublicKey(): Promise<Buffer> }
  upload(given: object): Promise<Receipt>
  uploadFile(given: object): Promise<Receipt>
  uploadFolder(given: object): Promise<UploadedFolder>
  uploadSignedDataItem(given: object): Promise<Receipt>
}

interface Library {
  readonly TurboFactory: { authenticated(given: object): Turbo; unauthenticated(given: object): Turbo }
  readonly EthereumSigner: new (key: string) => unknown
  createChainFolderIndex(given: object): object
}

const settings = {
  DEVNET_SEED: 'false',
  UPLOAD_FREE_ITEM_BYTES: '100000000',
  UPLOAD_FREE_WALLET_BYTES: '200000000',
}

t.test('what clients of the network upload', { skip }, async (t) => {
  const folder = t.testdir()
  const { urls } = await run(t, folder, settings)
  const { TurboFactory, EthereumSigner, createChainFolderIndex } = await turboLibrary<Library>()
  const services = {
    uploadServiceConfig: { url: urls.upload },
    paymentServiceConfig: { url: urls.payment },
  }
  const served = async (id: string): Promise<Buffer> =>
    Buffer.from(await (await fetch(`${urls.gateway}/raw/${id}`)).arrayBuffer())
  const wallet = JSON.parse(readFileSync(jwk, 'utf8')) as object
  const turbo = TurboFactory.authenticated({ ...services, privateKey: wallet })
  const { key, owner } = ed25519Key(Buffer.alloc(32, 3))
  const secret = Buffer.from(String(key.export({ format: 'jwk' }).d), 'base64url')
  const solana = encodeBase58(Buffer.concat([secret, owner]))
  const clients: Readonly<Record<string, Turbo>> = {
    arweave: turbo,
    ethereum: TurboFactory.authenticated({
      ...services,
      token: 'ethereum',
      signer: new EthereumSigner('07'.repeat(32)),
    }),
    solana: TurboFactory.authenticated({ ...services, token: 'solana', privateKey: solana }),
  }

  for (const [kind, client] of Object.entries(clients)) {
    await t.test(`strings, bytes and streams, signed with a key of ${kind}`, async (t) => {
      const bytes = randomBytes(300_000)
      const path = `${folder}/${kind}.bin`
      writeFileSync(path, bytes)
      const cases: readonly (readonly [Promise<Receipt>, Buffer])[] = [
        [client.upload({ data: `a string by ${kind}` }), Buffer.from(`a string by ${kind}`)],
        [client.upload({ data: bytes.subarray(1000) }), bytes.subarray(1000)],
        [
          client.uploadFile({
            fileStreamFactory: () => createReadStream(path),
            fileSizeFactory: () => bytes.length,
            dataItemOpts: { tags: [{ name: 'Content-Type', value: 'image/png' }], anchor: 'a'.repeat(32) },
          }),
          bytes,
        ],
      ]
      const publicKey = await client.signer.getPublicKey()
      for (const [uploading, sent] of cases) {
        const receipt = await uploading
        t.ok((await served(receipt.id)).equals(sent), 'byte for byte')
        t.ok(isSigned(receipt))
        t.equal(receipt.winc, '0')
        t.equal(receipt.owner, createHash('sha256').update(publicKey).digest('base64url'))
      }
    })
  }

  await t.test('an item that was signed elsewhere, by somebody who has no key', async (t) => {
    const signer = new ArweaveSigner(knownWallet())
    const item = createData('signed before', signer, {
      tags: [{ name: 'Content-Type', value: 'text/plain' }],
    })
    await item.sign(signer)
    const path = `${folder}/signed.item`
    writeFileSync(path, item.getRaw())
    const nobody = TurboFactory.unauthenticated(services)
    const sent = await nobody.uploadSignedDataItem({
      dataItemStreamFactory: () => createReadStream(path),
      dataItemSizeFactory: () => item.getRaw().length,
    })
    t.equal(sent.id, item.id)
    t.ok(isSigned(sent))
    t.equal(String(await served(sent.id)), 'signed before')
  })

  await t.test('a folder has a manifest, and what did not change is not uploaded again', async (t) => {
    const site = join(folder, 'site')
    mkdirSync(join(site, 'pictures'), { recursive: true })
    const files = { 'index.html': '<h1>home</h1>', 'pictures/a.txt': 'one', 'pictures/b.txt': 'two' }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(site, name), text)
    const folderIndex = createChainFolderIndex({
      owner: await turbo.signer.getPublicKey(),
      gatewayUrl: urls.gateway,
    })
    const deploy = (): Promise<UploadedFolder> => turbo.uploadFolder({ folderPath: site, folderIndex })
    const first = await deploy()
    t.match(first.folderIndexSummary, { totalFiles: 3, uploadedFiles: 3, reusedFiles: 0 })
    t.ok(first.fileResponses.every(isSigned) && isSigned(first.manifestResponse))
    const shown = async (id: string, path = ''): Promise<string> =>
      (await fetch(`${urls.gateway}/${id}${path}`)).text()
    t.equal(await shown(first.manifestResponse.id), '<h1>home</h1>')
    t.equal(await shown(first.manifestResponse.id, '/pictures/b.txt'), 'two')
    const page = await fetch(`${urls.gateway}/${first.manifestResponse.id}/index.html`)
    t.match(page.headers.get('content-type'), /^text\/html/)

    writeFileSync(join(site, 'pictures/b.txt'), 'another two')
    const second = await deploy()
    t.match(second.folderIndexSummary, { totalFiles: 3, uploadedFiles: 1, reusedFiles: 2 })
    t.equal(await shown(second.manifestResponse.id), '<h1>home</h1>')
    t.equal(await shown(second.manifestResponse.id, '/pictures/b.txt'), 'another two')
    t.equal(second.manifest.paths['pictures/a.txt']?.id, first.manifest.paths['pictures/a.txt']?.id)
  })

  await t.test('60 MB go up in parts, ten at once', async (t) => {
    const { bytes, factories } = largeFile(folder, 60_000_000)
    const file = await turbo.uploadFile({ ...factories, chunkingMode: 'force', maxChunkConcurrency: 10 })
    t.equal(file.winc, '0')
    t.ok(isSigned(file))
    t.ok((await served(file.id)).equals(bytes))
  })

  await t.test('what is refused is said in the words that the library reads', async (t) => {
    const nobody = TurboFactory.unauthenticated(services)
    const signer = new ArweaveSigner(knownWallet())
    const item = createData('bent', signer, {})
    await item.sign(signer)
    const bent = Buffer.from(item.getRaw())
    bent[bent.length - 1] = (bent.at(-1) ?? 0) ^ 1
    await t.rejects(
      nobody.uploadSignedDataItem({
        dataItemStreamFactory: () => bent,
        dataItemSizeFactory: () => bent.length,
      }),
      { message: 'Failed request (Status 400): Invalid Data Item!' },
    )
  })
})
