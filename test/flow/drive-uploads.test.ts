/** A public client of the file-system layer uploads drives through the upload service: public and private, folders and files. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { run } from './running.js'

const libraryPath = fileURLToPath(new URL('../clients/ardrive-core.js', import.meta.url))
const skip = existsSync(libraryPath) ? false : 'install test/clients and build to run it'

interface Created {
  readonly created: readonly {
    readonly type: string
    readonly entityId?: unknown
    readonly metadataTxId?: unknown
    readonly dataTxId?: unknown
    readonly entityName?: string
  }[]
}

interface Listed {
  readonly path: string
  readonly entityId: unknown
}

interface Drives {
  createPublicDrive(given: object): Promise<Created>
  createPrivateDrive(given: object): Promise<Created>
  uploadAllEntities(given: object): Promise<Created>
  listPublicFolder(given: object): Promise<Listed[]>
  listPrivateFolder(given: object): Promise<Listed[]>
  downloadPublicFolder(given: object): Promise<void>
  downloadPrivateFolder(given: object): Promise<void>
  getPrivateDrive(given: object): Promise<{ readonly name: string }>
}

/** What is used of the library. */
interface Library {
  readonly JWKWallet: new (jwk: object) => object
  readonly PrivateDriveKeyData: {
    from(password: string, jwk: object): Promise<{ readonly driveKey: object }>
  }
  arDriveFactory(given: object): Drives
  wrapFileOrFolder(path: string): object
}

t.test('ardrive-core-js uploads drives, public and private, and downloads them', { skip }, async (t) => {
  const folder = t.testdir({ data: {}, up: { letters: { old: {} } }, down: { public: {}, private: {} } })
  const settings = { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '300' }
  const { urls } = await run(t, join(folder, 'data'), settings)
  const { default: library } = (await import(pathToFileURL(libraryPath).href)) as { default: Library }
  const { arDriveFactory, JWKWallet, PrivateDriveKeyData, wrapFileOrFolder } = library
  const wallet = knownWallet()
  const drives = arDriveFactory({
    wallet: new JWKWallet(wallet),
    arweave: clientOf(urls.gateway ?? ''),
    turboSettings: {
      turboUploadUrl: new URL(urls.upload ?? ''),
      turboPaymentUrl: new URL(urls.payment ?? ''),
    },
  })
  const files: Readonly<Record<string, Buffer>> = {
    'letters/first.txt': Buffer.from('a first letter'),
    'letters/old/second.bin': randomBytes(60_000),
  }
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, 'up', name), bytes)

  /** The library reads drives by their blocks. */
  const mined = async ({ created }: Created): Promise<void> => {
    const ids = created.flatMap(({ metadataTxId, dataTxId }) => [metadataTxId, dataTxId]).filter(Boolean)
    for (const id of ids)
      await eventually('the item is in a block', async () => {
        const query = encodeURIComponent(`{ transaction(id: "${id}") { block { height } } }`)
        return (await (await fetch(`${urls.gateway}/graphql?query=${query}`)).text()).includes('"height"')
      })
  }
  const entity = ({ created }: Created, type: string): unknown =>
    created.find((one) => one.type === type)?.entityId

  for (const kind of ['public', 'private'] as const) {
    await t.test(`a ${kind} drive`, async (t) => {
      const isPrivate = kind === 'private'
      const newPrivateDriveData = await PrivateDriveKeyData.from('a password', wallet)
      const { driveKey } = newPrivateDriveData
      const keyed = isPrivate ? { driveKey } : {}
      const drive = isPrivate
        ? await drives.createPrivateDrive({ driveName: 'private drive', newPrivateDriveData })
        : await drives.createPublicDrive({ driveName: 'public drive' })
      const rootFolderId = entity(drive, 'folder')
      const wrappedEntity = wrapFileOrFolder(join(folder, 'up', 'letters'))
      // Right after the drive was made: nothing of it is in a block yet.
      const sent = await drives.uploadAllEntities({
        entitiesToUpload: [{ wrappedEntity, destFolderId: rootFolderId, ...keyed }],
      })
      t.equal(sent.created.filter(({ type }) => type === 'file').length, 2)
      await mined(drive)
      await mined(sent)
      const wanted = { folderId: rootFolderId, maxDepth: 5, includeRoot: true, ...keyed }
      const listed = isPrivate
        ? await drives.listPrivateFolder(wanted)
        : await drives.listPublicFolder(wanted)
      const under = `/${kind} drive`
      t.strictSame(
        listed.map(({ path }) => path).sort(),
        ['', '/letters', '/letters/first.txt', '/letters/old', '/letters/old/second.bin'].map(
          (path) => under + path,
        ),
      )
      const place = { folderId: rootFolderId, destFolderPath: join(folder, 'down', kind), maxDepth: 5 }
      if (isPrivate) await drives.downloadPrivateFolder({ ...place, driveKey })
      else await drives.downloadPublicFolder(place)
      for (const [name, bytes] of Object.entries(files)) {
        const path = join(folder, 'down', kind, `${kind} drive`, name)
        // The library does not wait until files are written.
        await eventually(
          'the file is there whole',
          () => existsSync(path) && readFileSync(path).equals(bytes),
        )
      }
      for (const { type, dataTxId } of sent.created) {
        if (type !== 'file') continue
        const bytes = Buffer.from(await (await fetch(`${urls.gateway}/raw/${dataTxId}`)).arrayBuffer())
        t.equal(
          Object.values(files).some((one) => one.equals(bytes)),
          !isPrivate,
          'what is private is no plain text',
        )
      }
    })
  }
})
