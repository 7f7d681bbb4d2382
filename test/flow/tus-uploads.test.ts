/** Uploads that go on where they were, as a client of others does them: tus-js-client, by drafts 3 and 5 of the IETF. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { random } from '../property.js'
import { run } from './running.js'

const library = fileURLToPath(
  new URL('../../../test/clients/node_modules/tus-js-client/lib.esm/node/index.js', import.meta.url),
)
const skip = existsSync(library) ? false : 'install test/clients to run it'

interface TusUpload {
  readonly url: string | null
  start(): void
  abort(): Promise<void>
}

interface Library {
  readonly Upload: new (file: Buffer, options: object) => TusUpload
}

t.test('an item goes up in pieces, and goes on after an interruption', { skip }, async (t) => {
  const { urls } = await run(t, t.testdir(), {
    SERVICES: 'gateway,upload',
    UPLOAD_FREE_ITEM_BYTES: '8000000',
    UPLOAD_FREE_WALLET_BYTES: '90000000',
  })
  const { Upload } = (await import(library)) as Library
  const signer = ed25519Signer(Buffer.alloc(32, 9))
  for (const protocol of ['ietf-draft-03', 'ietf-draft-05']) {
    const item = Buffer.from(signItem(signer, {}, Buffer.alloc(5_000_000, `${protocol} ${random()}`)))
    const common = { endpoint: `${urls.upload}/upload`, protocol, chunkSize: 1_000_000, retryDelays: [] }
    let cut: TusUpload | undefined
    await new Promise<void>((resolve, reject) => {
      const upload = new Upload(item, {
        ...common,
        onError: reject,
        onSuccess: () => reject(new Error('it should have been interrupted')),
        onChunkComplete: (_: number, accepted: number) => {
          if (accepted >= 2_000_000) void upload.abort().then(resolve, reject)
        },
      })
      cut = upload
      upload.start()
    })
    const seen: number[] = []
    await new Promise<void>((resolve, reject) => {
      const upload = new Upload(item, {
        ...common,
        uploadUrl: cut?.url,
        onError: reject,
        onSuccess: () => resolve(),
        onProgress: (sent: number) => seen.push(sent),
      })
      upload.start()
    })
    t.ok((seen[0] ?? 0) >= 2_000_000, `${protocol} goes on from ${seen[0]}`)
    const about = (await (await fetch(cut?.url ?? '')).json()) as { receipt: { id: string }; state: string }
    t.equal(about.state, 'finalized')
    const served = Buffer.from(await (await fetch(`${urls.gateway}/raw/${about.receipt.id}`)).arrayBuffer())
    t.ok(served.length === 5_000_000 && item.subarray(-served.length).equals(served), 'byte for byte')
  }
  const all = await new Promise<string | null>((resolve, reject) => {
    const item = Buffer.from(signItem(signer, {}, Buffer.from(`at once ${random()}`)))
    const upload = new Upload(item, {
      endpoint: `${urls.upload}/upload`,
      protocol: 'ietf-draft-05',
      uploadDataDuringCreation: true,
      retryDelays: [],
      onError: reject,
      onSuccess: () => resolve(upload.url),
    })
    upload.start()
  })
  t.match(await (await fetch(all ?? '')).json(), { state: 'finalized' })
})
