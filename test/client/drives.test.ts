import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { bundleTags, packBundle } from '../../src/client/bundle-layout.js'
import { ClientError } from '../../src/client/errors.js'
import { DriveIndex } from '../../src/client/fs/drive-index.js'
import { driveKeyOf, driveSignature, fileKeyOf, opened, sealed } from '../../src/client/fs/drive-keys.js'
import { type DriveEntity, type ListedItem, readEntity } from '../../src/client/fs/entities.js'
import { type DriveOptions, Drives, pathIn } from '../../src/client/fs/index.js'
import { openedPieces } from '../../src/client/fs/opened-pieces.js'
import { counted, sealedSource } from '../../src/client/fs/sealed-source.js'
import { allBytes } from '../../src/client/payload.js'
import type { ArweaveJwk } from '../../src/client/rsa.js'
import { encodeHex } from '../../src/format/hex.js'
import { clientOf } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { run } from '../flow/running.js'
import { receiptOf, serving } from './rig.js'

const library = fileURLToPath(new URL('../clients/ardrive-core.js', import.meta.url))
const skip = existsSync(library) ? false : 'install test/clients and build to run it'

interface Listed {
  readonly name: string
  readonly path: string
}

/** What is used of the library. */
interface Library {
  arDriveFactory(given: object): {
    getPrivateDrive(given: object): Promise<Listed & { rootFolderId: unknown }>
    listPublicFolder(given: object): Promise<Listed[]>
    listPrivateFolder(given: object): Promise<Listed[]>
    downloadPublicFile(given: object): Promise<void>
    downloadPrivateFile(given: object): Promise<void>
    createPublicDrive(given: object): Promise<{ created: { type: string; entityId?: unknown }[] }>
    createPrivateDrive(given: object): Promise<{ created: { type: string; entityId?: unknown }[] }>
    createPrivateFolder(given: object): Promise<unknown>
    uploadPublicFile(given: object): Promise<unknown>
    uploadPrivateFile(given: object): Promise<unknown>
  }
  deriveDriveKey(given: object): Promise<{ keyData: Buffer }>
  deriveFileKey(fileId: string, key: unknown): Promise<{ keyData: Buffer }>
  PrivateDriveKeyData: {
    from(password: string, key: unknown): Promise<{ driveId: unknown; driveKey: unknown }>
  }
  wrapFileOrFolder(path: string): object
  JWKWallet: new (jwk: unknown) => unknown
  EID(id: string): unknown
}

t.test('keys of passwords are those that clients in use derive', async (t) => {
  const ikm = new Uint8Array(512).fill(3)
  t.equal(
    encodeHex(await driveKeyOf(ikm, 'password')),
    '9087f48873a4a40fedf149dc4745a860fc26a9bc7932781da8c9c6f93310c451',
  )
  t.equal(
    encodeHex(await driveKeyOf(ikm, 'pé')),
    '438cc576e3477345989ebaf24ce57a308c30fc00704167a63f48aadcb465770c',
  )
  const key = await driveKeyOf(ikm, 'password')
  const { bytes, tags } = await sealed(key, new TextEncoder().encode('secret'))
  const iv = tags[1]?.value
  t.equal(new TextDecoder().decode(await opened(key, bytes, 'AES256-GCM', iv)), 'secret')
  const failure = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'none',
      (error: ClientError) => error.code,
    )
  t.equal(await failure(opened(ikm.subarray(0, 32), bytes, undefined, iv)), 'wrong-key')
  t.equal(await failure(opened(key, bytes, 'ROT13', iv)), 'wrong-key')
})

/** A gateway that says of a private drive's file that it is not encrypted, and gives an entity of its own for it. */
async function forgedEntities(
  t: Test,
  options: DriveOptions,
  { id, driveId, txId }: DriveEntity,
  password: string,
): Promise<void> {
  const forged = { name: 'sea.txt', size: 4, dataTxId: 'E'.repeat(43), pinnedDataOwner: 'x' }
  for (const cipher of [undefined, 'AES256-CTR']) {
    const lying = async (url: string, init?: RequestInit): Promise<Response> => {
      if (url.endsWith(txId)) return Response.json(forged)
      const response = await fetch(url, init)
      if (!url.endsWith('/graphql')) return response
      const answer = (await response.json()) as { data: { transactions?: { edges: { node: ListedItem }[] } } }
      for (const { node } of answer.data.transactions?.edges ?? []) {
        if (node.id !== txId) continue
        const tags = node.tags.filter(({ name }) => !name.startsWith('Cipher'))
        const kept = node.tags.filter(({ name }) => name === 'Cipher-IV')
        const other = cipher === undefined ? [] : [...kept, { name: 'Cipher', value: cipher }]
        Object.assign(node, { tags: [...tags, ...other] })
      }
      return Response.json(answer)
    }
    const open = await new Drives({ ...options, fetch: lying }).open(driveId, password)
    t.match(open.problems, [{ txId, reason: /not encrypted/ }])
    t.notOk(
      open.entities.some((one) => one.id === id),
      `${cipher}: the file is not what the gateway made of it`,
    )
  }
}

t.test('a list of a drive is whole, or it is an error', async (t) => {
  const pages = {
    count: 0,
    last: Number.POSITIVE_INFINITY,
    cursor: (at: number): string | undefined => `c${at}`,
  }
  const { url } = await serving(t, () => {
    const at = pages.count++
    const node = { id: `id${at}`, tags: [], owner: { address: 'a' }, block: null, bundledIn: null }
    const cursor = pages.cursor(at)
    const edges = cursor === undefined ? [] : [{ cursor, node }]
    return { json: { data: { transactions: { pageInfo: { hasNextPage: at < pages.last }, edges } } } }
  })
  const list = (change: Partial<typeof pages>): Promise<readonly unknown[]> => {
    Object.assign(pages, { count: 0, last: Number.POSITIVE_INFINITY, ...change })
    return new DriveIndex(url, (address, init) => fetch(address, init), 5).query({ 'Drive-Id': 'x' })
  }
  t.equal((await list({ last: 4 })).length, 5, 'as many pages as may be asked for')
  await t.rejects(list({ last: 5 }), { code: 'too-large' }, 'one more')
  await t.rejects(list({ cursor: () => 'same' }), { code: 'malformed-answer' })
  t.equal(pages.count, 2, 'pages in a circle are not followed')
  await t.rejects(list({ cursor: () => undefined }), { code: 'malformed-answer' })
  t.equal(pages.count, 1)
  const html = new DriveIndex(url, () => Promise.resolve(new Response('<p>Welcome</p>')))
  await t.rejects(html.query({}), { code: 'malformed-answer' }, 'a page of HTML')
})

t.test('tags of an item: the id is no part of the query, and an answer has its bounds', async (t) => {
  const bodies: unknown[] = []
  const index = (answer: () => Response): DriveIndex =>
    new DriveIndex('https://gateway.test', async (_, init) => {
      bodies.push(JSON.parse(String(init?.body)))
      return answer()
    })
  const json = (data: object): DriveIndex => index(() => Response.json(data))
  const tags = [{ name: 'Cipher', value: 'AES256-GCM' }]
  const id = 'x") { id } }'
  t.strictSame(await json({ data: { transaction: { tags } } }).tagsOf(id), tags)
  t.match(bodies, [{ query: /transaction\(id: \$id\)/, variables: { id } }])
  await t.rejects(json({ data: { transaction: null } }).tagsOf(id), { code: 'not-found' })
  await t.rejects(json({ errors: [{ message: 'no' }] }).tagsOf(id), { code: 'malformed-answer' })
  await t.rejects(index(() => new Response('<p>Welcome</p>')).tagsOf(id), { code: 'malformed-answer' })
  await t.rejects(index(() => new Response('', { status: 429 })).tagsOf(id), { code: 'rate-limited' })
  const endless = new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(2 ** 22)) })
  await t.rejects(index(() => new Response(endless)).tagsOf(id), { code: 'too-large' })
})

t.test('a file whose content has no id is none', async (t) => {
  const item = {
    id: 'a'.repeat(43),
    owner: { address: 'b'.repeat(43) },
    tags: Object.entries({ 'Entity-Type': 'file', 'Drive-Id': 'd', 'File-Id': 'f' }).map(([name, value]) => ({
      name,
      value,
    })),
  }
  const read = (dataTxId: string): unknown =>
    readEntity(item, Buffer.from(JSON.stringify({ name: 'f', size: 1, dataTxId })))
  t.match(read('c'.repeat(43)), { name: 'f', file: { dataTxId: 'c'.repeat(43) } })
  t.equal(read('../../graphql?query={x}'), 'its metadata names no content')
})

t.test('long content is encrypted as it is read, so that it opens as a whole', async (t) => {
  const key = randomBytes(32)
  const data = randomBytes(5_000_011)
  const plain = { size: data.length, open: (from: number) => pieces(data, from) }
  const iv = randomBytes(12)
  for (const { source, tags } of [await sealedSource(key, plain), await counted(key, plain, iv)]) {
    const bytes = await allBytes(source)
    t.equal(bytes.length, source.size)
    const [cipher, nonce] = tags.map(({ value }) => value)
    t.ok(data.equals(Buffer.from(await opened(key, bytes, cipher, nonce))), String(cipher))
    const read = async (given: Uint8Array): Promise<Buffer> => {
      const plains: Uint8Array[] = []
      for await (const piece of openedPieces(key, pieces(Buffer.from(given), 0), cipher, nonce))
        plains.push(piece)
      return Buffer.concat(plains)
    }
    t.ok(data.equals(await read(bytes)), `${cipher}, while it comes`)
    if (cipher === 'AES256-GCM') {
      const bent = bytes.slice()
      bent[1_000_000] = (bent[1_000_000] ?? 0) ^ 1
      await t.rejects(read(bent), { code: 'wrong-key' })
      await t.rejects(read(bytes.subarray(0, -1)), { code: 'wrong-key' })
      await t.rejects(read(bytes.subarray(0, 9)), { code: 'wrong-key' })
    }
    const from = 3_333_333
    const rest: Uint8Array[] = []
    for await (const piece of source.open(from)) rest.push(piece)
    t.ok(Buffer.concat(rest).equals(Buffer.from(bytes.subarray(from))), 'and from any place on')
  }
  const { source } = await sealedSource(key, { size: data.length + 1, open: plain.open })
  await t.rejects(allBytes(source), { code: 'changed-while-read' })
})

/** Pieces whose sizes fit no block. */
async function* pieces(data: Buffer, from: number): AsyncGenerator<Uint8Array> {
  for (let at = from; at < data.length; at += 70_001) yield data.subarray(at, at + 70_001)
}

t.test('drives go both ways between this layer and ardrive-core-js', { skip }, async (t) => {
  const { default: theirs } = (await import(pathToFileURL(library).href)) as { default: Library }
  const { EID, PrivateDriveKeyData, JWKWallet } = theirs
  const folder = t.testdir({ data: {}, down: {}, 'their file.txt': 'written by the library' })
  const running = await run(t, join(folder, 'data'), {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '0',
    SERVICES: 'gateway',
  })
  const { gateway = '', devnet: node = '' } = running.urls
  const { post, wallet } = await payerAt(node)
  const jwk = wallet as unknown as ArweaveJwk
  let last = ''
  const publish = async (
    data: Uint8Array,
    tags: readonly { name: string; value: string }[],
  ): Promise<string> => {
    last = await post(data, Object.fromEntries(tags.map(({ name, value }) => [name, value])))
    return last
  }
  const indexed = () =>
    eventually('the last item is in a block', async () => {
      const query = encodeURIComponent(`{ transaction(id: "${last}") { block { height } } }`)
      return (await (await fetch(`${gateway}/graphql?query=${query}`)).text()).includes('"height"')
    })
  const drives = new Drives({ gatewayUrl: gateway, publish, jwk })
  const reader = theirs.arDriveFactory({ wallet: new JWKWallet(wallet), arweave: clientOf(gateway) })

  for (const password of [undefined, 'pé & ß']) {
    const isPrivate = password !== undefined
    const { driveId, rootFolderId } = await drives.create('photos', password)
    await indexed()
    const empty = await drives.open(driveId, password)
    // A gateway that calls a private drive public would have files put there in plain text.
    if (!isPrivate) await t.rejects(drives.open(driveId, 'word'), { code: 'untrue', message: /is public/ })
    const summer = await drives.createFolder(empty, 'summer', rootFolderId)
    const data = Buffer.from('a picture of the sea')
    const fileId = await drives.put(empty, {
      name: 'sea.txt',
      parentId: summer,
      data,
      contentType: 'text/plain',
    })
    await indexed()
    const open = await drives.open(driveId, password)
    t.strictSame(open.problems, [])
    t.strictSame(open.entities.map((one) => pathIn(open, one)).sort(), ['', 'summer', 'summer/sea.txt'])
    const file = open.entities.find(({ id }) => id === fileId)
    if (file === undefined) throw new Error('no file')
    t.equal(Buffer.from(await drives.get(open, file)).toString(), 'a picture of the sea')

    if (isPrivate) await forgedEntities(t, { gatewayUrl: gateway, jwk }, file, password)
    await drives.change(open, file, { name: 'ocean.txt', parentId: rootFolderId })
    await indexed()
    await drives.snapshot(open)
    await indexed()
    const hidden = open.entities.find(({ id }) => id === summer)
    if (hidden === undefined) throw new Error('no folder')
    await drives.change(open, hidden, { isHidden: true })
    await indexed()
    const later = await drives.open(driveId, password)
    t.strictSame(later.problems, [])
    t.strictSame(later.entities.map((one) => pathIn(later, one)).sort(), ['', 'ocean.txt', 'summer'])
    t.equal(later.entities.find(({ id }) => id === summer)?.isHidden, true)

    const driveKey = isPrivate
      ? await theirs.deriveDriveKey({
          dataEncryptionKey: password,
          driveId,
          walletPrivateKey: JSON.stringify(wallet),
          driveSignatureType: 2,
        })
      : undefined
    if (driveKey !== undefined) {
      t.equal(encodeHex(later.key as Uint8Array), driveKey.keyData.toString('hex'))
      const one = encodeHex(await fileKeyOf(later.key as Uint8Array, fileId))
      t.equal(one, (await theirs.deriveFileKey(fileId, driveKey)).keyData.toString('hex'))
    }
    const question = { folderId: EID(rootFolderId), maxDepth: 5, includeRoot: true, driveKey }
    const listed = isPrivate
      ? await reader.listPrivateFolder(question)
      : await reader.listPublicFolder(question)
    t.strictSame(listed.map(({ path }) => path).sort(), ['/photos', '/photos/ocean.txt', '/photos/summer'])
    const down = {
      fileId: EID(fileId),
      destFolderPath: join(folder, 'down'),
      driveKey,
      defaultFileName: 'got',
    }
    await (isPrivate ? reader.downloadPrivateFile(down) : reader.downloadPublicFile(down))
    const written = () =>
      readFile(join(folder, 'down', 'got'))
        .catch(() => readFile(join(folder, 'down', 'ocean.txt')))
        .catch(() => Buffer.alloc(0))
    await eventually('the file is written whole', async () => (await written()).length === data.length)
    t.ok(data.equals(await written()))
  }

  const wrong = await drives.create('locked', 'right')
  await indexed()
  const refused = drives.open(wrong.driveId, 'wrong')
  t.equal(
    await refused.then(
      () => '',
      (error: ClientError) => error.code,
    ),
    'wrong-key',
  )
  await t.rejects(drives.open('00000000-0000-0000-0000-000000000000'), ClientError)

  for (const type of [1, 2] as const) {
    const theirKey = await theirs.deriveDriveKey({
      dataEncryptionKey: 'word',
      driveId: wrong.driveId,
      walletPrivateKey: JSON.stringify(wallet),
      driveSignatureType: type,
    })
    const ours = await driveKeyOf(await driveSignature(jwk, wrong.driveId, type), 'word')
    t.equal(encodeHex(ours), theirKey.keyData.toString('hex'), `signature type ${type}`)
  }

  // The other way: the library uploads to a service that puts each item into a bundle on the chain.
  const service = await serving(t, async ({ method, body }) => {
    if (method !== 'POST') return undefined
    const receipt = receiptOf(body)
    const tags = Object.fromEntries(bundleTags.map(({ name, value }) => [name, value]))
    await post(packBundle([{ id: String(receipt.id), bytes: body }]), tags)
    last = String(receipt.id)
    return { json: receipt }
  })
  const turboUrl = new URL(service.url)
  const arweave = clientOf(gateway)
  const writer = theirs.arDriveFactory({
    wallet: new JWKWallet(wallet),
    arweave,
    turboSettings: { turboUrl },
  })
  const wrapped = () => theirs.wrapFileOrFolder(join(folder, 'their file.txt'))
  for (const password of [undefined, 'pass word']) {
    const keyed = password === undefined ? undefined : await PrivateDriveKeyData.from(password, wallet)
    const made =
      keyed === undefined
        ? await writer.createPublicDrive({ driveName: 'theirs' })
        : await writer.createPrivateDrive({ driveName: 'theirs', newPrivateDriveData: keyed })
    const idOf = (type: string): string => String(made.created.find((one) => one.type === type)?.entityId)
    await indexed()
    const parentFolderId = EID(idOf('folder'))
    const upload = { parentFolderId, wrappedFile: wrapped(), driveKey: keyed?.driveKey }
    await (keyed === undefined ? writer.uploadPublicFile(upload) : writer.uploadPrivateFile(upload))
    await indexed()
    const open = await eventually('both entities are in the index', async () => {
      const one = await drives.open(idOf('drive'), password)
      return one.entities.length === 2 && one
    })
    t.equal(open.drive.name, 'theirs')
    t.strictSame(open.problems, [])
    const file = open.entities.find(({ kind }) => kind === 'file')
    if (file === undefined) throw new Error('no file')
    t.equal(pathIn(open, file), 'their file.txt')
    t.equal(Buffer.from(await drives.get(open, file)).toString(), 'written by the library')
  }
})
