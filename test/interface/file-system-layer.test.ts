/** A public client of the file-system layer reads a drive through the gateway: its queries, and the content behind them. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { clientOf } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { run } from '../flow/running.js'

const libraryPath = fileURLToPath(new URL('../clients/ardrive-core.js', import.meta.url))

interface Named {
  readonly name: string
  readonly path?: string
}

/** What is used of the library. */
interface Library {
  arDriveAnonymousFactory(given: { arweave: unknown }): {
    getPublicDrive(given: { driveId: unknown }): Promise<Named & { rootFolderId: unknown }>
    getPublicFile(given: { fileId: unknown }): Promise<Named & { size: unknown }>
    getAllDrivesForAddress(given: { address: unknown; privateKeyData: unknown }): Promise<Named[]>
    listPublicFolder(given: { folderId: unknown; maxDepth: number; includeRoot: boolean }): Promise<Named[]>
    getOwnerForDriveId(driveId: unknown): Promise<unknown>
    downloadPublicFile(given: { fileId: unknown; destFolderPath: string }): Promise<void>
  }
  EID(id: string): unknown
  ADDR(address: string): unknown
  PrivateKeyData: new (given: object) => unknown
}

const skip = existsSync(libraryPath) ? false : 'install test/clients and build to run it'

t.test('ardrive-core-js finds a drive, lists its folders and downloads a file', { skip }, async (t) => {
  const { default: library } = (await import(pathToFileURL(libraryPath).href)) as { default: Library }
  const { arDriveAnonymousFactory, EID, ADDR, PrivateKeyData } = library
  const folder = t.testdir({ data: {}, down: {} })
  const running = await run(t, join(folder, 'data'), { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0' })
  const { gateway = '', devnet: node = '' } = running.urls
  const { post, address } = await payerAt(node)
  const drive = { driveId: randomUUID(), rootFolderId: randomUUID() }
  const [folderId, fileId] = [randomUUID(), randomUUID()]
  const entity = (data: object, tags: Record<string, string>): Promise<string> =>
    post(Buffer.from(JSON.stringify(data)), {
      ArFS: '0.15',
      'App-Name': 'test',
      'Content-Type': 'application/json',
      'Unix-Time': '1700000000',
      'Drive-Id': drive.driveId,
      ...tags,
    })
  await entity(
    { name: 'photos', rootFolderId: drive.rootFolderId },
    { 'Entity-Type': 'drive', 'Drive-Privacy': 'public' },
  )
  await entity({ name: 'photos' }, { 'Entity-Type': 'folder', 'Folder-Id': drive.rootFolderId })
  await entity(
    { name: 'summer' },
    { 'Entity-Type': 'folder', 'Folder-Id': folderId, 'Parent-Folder-Id': drive.rootFolderId },
  )
  const content = Buffer.from('a picture of the sea')
  const dataTxId = await post(content, { 'Content-Type': 'text/plain' })
  const about = { name: 'sea.txt', size: content.length, lastModifiedDate: 1_700_000_000_000, dataTxId }
  const last = await entity(
    { ...about, dataContentType: 'text/plain' },
    { 'Entity-Type': 'file', 'File-Id': fileId, 'Parent-Folder-Id': folderId },
  )
  const query = encodeURIComponent(`{ transaction(id: "${last}") { block { height } } }`)
  await eventually('the item is in a block', async () => {
    const answer = await (await fetch(`${gateway}/graphql?query=${query}`)).text()
    return answer.includes('"height"')
  })

  const reader = arDriveAnonymousFactory({ arweave: clientOf(gateway) })
  const found = await reader.getPublicDrive({ driveId: EID(drive.driveId) })
  t.equal(found.name, 'photos')
  t.equal(String(found.rootFolderId), drive.rootFolderId)
  t.equal(String(await reader.getOwnerForDriveId(EID(drive.driveId))), address)
  const all = await reader.getAllDrivesForAddress({
    address: ADDR(address),
    privateKeyData: new PrivateKeyData({}),
  })
  t.same(
    all.map(({ name }) => name),
    ['photos'],
  )
  const listed = await reader.listPublicFolder({
    folderId: EID(drive.rootFolderId),
    maxDepth: 5,
    includeRoot: true,
  })
  t.same(listed.map(({ path }) => path).sort(), ['/photos', '/photos/summer', '/photos/summer/sea.txt'])
  t.equal(Number((await reader.getPublicFile({ fileId: EID(fileId) })).size), content.length)
  await reader.downloadPublicFile({ fileId: EID(fileId), destFolderPath: join(folder, 'down') })
  // The library does not wait until the file is written.
  const written = async (): Promise<Buffer> =>
    readFile(join(folder, 'down', 'sea.txt')).catch(() => Buffer.alloc(0))
  await eventually('the file is written whole', async () => (await written()).length === content.length)
  t.ok(content.equals(await written()))
})
