import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unbundleData } from 'arbundles'
import t, { type Test } from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { ClientError } from '../../src/client/errors.js'
import { type FolderOptions, type FolderResult, uploadFolder } from '../../src/client/folder.js'
import type { FolderIndexLayer } from '../../src/client/folder-index.js'
import { fileStore } from '../../src/client/node/file-store.js'
import { readFolder } from '../../src/client/node/files.js'
import { manifestOf } from '../../src/client/path-manifest.js'
import { sourceOfBytes } from '../../src/client/payload.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { parseItemHeader } from '../../src/format/item.js'
import { parseManifest } from '../../src/format/manifest.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagValue } from '../../src/format/tag.js'
import { sluice } from '../flow/running.js'
import { type Counter, info, receiptOf, type ServedAnswer, serving } from './rig.js'

interface Posted {
  readonly id: string
  readonly body: Buffer
  readonly payload: Buffer
  tag(name: string): string | undefined
}

/** An upload service and a gateway that keep what they are sent. */
async function service(
  t: Test,
  refuse: (posted: Posted) => ServedAnswer | undefined = () => undefined,
): Promise<Counter & { items: Posted[] }> {
  const items: Posted[] = []
  const counter = await serving(t, ({ method, path, body }) => {
    if (path === '/v1/info') return info
    const [, kept] = /^\/v1\/tx\/([\w-]{43})\/status$/.exec(path) ?? []
    if (kept !== undefined)
      return items.some(({ id }) => id === kept) ? { json: { status: 'FINALIZED' } } : undefined
    if (method === 'HEAD') return undefined
    if (path.startsWith('/v1/account/balance/')) return { json: { winc: '1000000' } }
    if (path.startsWith('/v1/price/')) return { json: { winc: '5', adjustments: [] } }
    if (path === '/graphql') return { json: { data: { transactions: { edges: [] } } } }
    if (method !== 'POST') return undefined
    const header = parseItemHeader(body)
    if (header === 'more' || isRefusal(header)) return { status: 400, text: 'no item' }
    const posted = {
      id: String(header.id),
      body,
      payload: body.subarray(header.headerSize),
      tag: (name: string) => tagValue(header.tags, name),
    }
    const refused = refuse(posted)
    if (refused !== undefined) return refused
    items.push(posted)
    return { json: receiptOf(body) }
  })
  return { ...counter, items }
}

const file = (path: string, text: string) => ({
  path,
  source: sourceOfBytes(Buffer.from(text)),
  contentType: 'text/plain',
})

function uploading(url: string, store: string, options: FolderOptions): Promise<FolderResult> {
  return signerOfEthereum('01'.repeat(32)).then((signer) => {
    const retry = { tries: 1 }
    const client = new SluiceClient({
      uploadUrl: url,
      paymentUrl: url,
      gatewayUrls: [url],
      signer,
      retry,
      resume: fileStore(store),
    })
    return uploadFolder(client, options).result
  })
}

t.test('a folder becomes items and a manifest; a second time only what changed goes', async (t) => {
  const { url, items } = await service(t)
  const store = join(t.testdir(), 'store')
  const files = [
    file('index.html', 'one'),
    file('a/b c&.txt', 'two'),
    file('__proto__', 'three'),
    file('empty', ''),
  ]
  const first = await uploading(url, store, { files })
  t.equal(items.length, 5)
  t.equal(
    items.find(({ payload }) => payload.toString() === 'one')?.tag('File-SHA256'),
    '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed',
  )
  const manifest = items.at(-1)
  t.equal(manifest?.tag('Content-Type'), 'application/x.arweave-manifest+json')
  const read = parseManifest(manifest?.payload ?? Buffer.alloc(0), {
    sizeBytes: 1e6,
    pathsMax: 10,
    pathMaxBytes: 100,
  })
  if (isRefusal(read)) throw new Error(read.message)
  t.strictSame([...read.paths.keys()].sort(), files.map(({ path }) => path).sort())
  t.equal(read.index, first.fileResponses[0]?.id)
  const again = await uploading(url, store, { files })
  t.equal(items.length, 5)
  t.match(again.folderIndexSummary, { uploadedFiles: 0, reusedFiles: 4 })
  t.equal(again.manifestResponse?.id, first.manifestResponse?.id)
  const changed = await uploading(url, store, { files: [file('index.html', 'new'), ...files.slice(1)] })
  t.match(changed.folderIndexSummary, { uploadedFiles: 1, reusedFiles: 3 })
  t.equal(items.length, 7)
})

t.test('what one service took is nothing at another, nor at one that was set up anew', async (t) => {
  const [one, other] = [await service(t), await service(t)]
  const store = join(t.testdir(), 'store')
  for (const bundleSmallFiles of [false, true]) {
    const files = [file('index.html', `one ${bundleSmallFiles}`), file('a', `two ${bundleSmallFiles}`)]
    const options = { files, bundleSmallFiles }
    const first = await uploading(one.url, store, options)
    t.match(first.folderIndexSummary, { uploadedFiles: 2, reusedFiles: 0 }, 'new there')
    t.match((await uploading(other.url, store, options)).folderIndexSummary, {
      uploadedFiles: 2,
      reusedFiles: 0,
    })
    t.match((await uploading(one.url, store, options)).folderIndexSummary, {
      uploadedFiles: 0,
      reusedFiles: 2,
    })
    other.items.length = 0
    const anew = await uploading(other.url, store, options)
    t.match(anew.folderIndexSummary, { uploadedFiles: 2, reusedFiles: 0 })
    t.equal(other.items.length, bundleSmallFiles ? 2 : 3, 'the manifest goes again, too')
  }
})

t.test('what the service has given up, or the gateway alone has, is asked for', async (t) => {
  let [status, head] = ['FINALIZED', 404]
  const posted: string[] = []
  const { url } = await serving(t, ({ method, path, body }) => {
    if (path === '/v1/info') return info
    if (path.endsWith('/status')) return { json: { status } }
    if (method === 'HEAD') return { status: head }
    if (method !== 'POST' || path === '/v1/check-missing') return undefined
    posted.push(path)
    return { json: receiptOf(body) }
  })
  const store = join(t.testdir(), 'store')
  const options = { files: [file('a', 'a')], manifest: false } as const
  const sent = async (): Promise<number> => {
    posted.length = 0
    await uploading(url, store, options)
    return posted.length
  }
  t.equal(await sent(), 1)
  t.equal(await sent(), 0)
  status = 'FAILED'
  t.equal(await sent(), 1, 'given up')
  head = 200
  t.equal(await sent(), 0, 'served')
  head = 503
  t.equal(await sent(), 1, 'nobody knows')
})

t.test('what is planned is what is sent, byte for byte', async (t) => {
  const { url, items } = await service(t)
  const files = [
    ...Array.from({ length: 20 }, (_, at) => file(`${at}/ü.txt`, `file ${at}`.padEnd(at * 40))),
    file('twin', 'file 0'),
    { path: 'long', source: sourceOfBytes(Buffer.alloc(300_000, 7)) },
  ]
  const store = join(t.testdir(), 'store')
  for (const [bundleSmallFiles, some] of [
    [true, files],
    [true, [...files, file('new', 'new')]],
    [false, files.map((each) => ({ ...each, path: `again/${each.path}` }))],
    [false, [file('other', 'other'), ...files]],
  ] as const) {
    const plans: number[][] = []
    items.length = 0
    const sentBefore: number[] = []
    const onPlan = async ({ itemBytes }: { readonly itemBytes: readonly number[] }): Promise<undefined> => {
      sentBefore.push(items.length)
      plans.push([...itemBytes])
    }
    await uploading(url, bundleSmallFiles ? store : `${store}-2`, { files: some, bundleSmallFiles, onPlan })
    const sorted = (sizes: readonly number[]): number[] => [...sizes].sort((one, two) => one - two)
    t.strictSame(plans.map(sorted), [sorted(items.map(({ body }) => body.length))])
    await uploading(url, bundleSmallFiles ? store : `${store}-2`, { files: some, bundleSmallFiles, onPlan })
    t.strictSame(plans[1], [], 'a second time nothing is')
    t.equal(sentBefore[0], 0, 'it was said before')
  }
})

t.test('a service that charges more than was quoted is not given more', async (t) => {
  let sent = 0
  const { url } = await serving(t, ({ method, path, body }) => {
    if (path === '/v1/info') return info
    if (method !== 'POST' || path === '/v1/check-missing') return undefined
    sent++
    return { json: receiptOf(body, '6') }
  })
  const files = Array.from({ length: 10 }, (_, at) => file(`${at}`, `${at}`))
  const options = { files, maxConcurrentUploads: 1, onPlan: async () => 13n }
  await t.rejects(
    uploading(url, join(t.testdir(), 'store'), options),
    /charged 18 winc by now, more than the 13/,
  )
  t.equal(sent, 3)
})

t.test('a folder that breaks off goes on where it was', async (t) => {
  let broken = true
  const { url, items } = await service(t, ({ payload }) => {
    return broken && payload.toString() === 'file 7' ? { status: 400, text: 'no' } : undefined
  })
  const store = join(t.testdir(), 'store')
  const files = Array.from({ length: 10 }, (_, at) => file(`${at}.txt`, `file ${at}`))
  await t.rejects(uploading(url, store, { files, maxConcurrentUploads: 1 }), ClientError)
  t.equal(items.length, 7)
  broken = false
  const result = await uploading(url, store, { files })
  t.match(result.folderIndexSummary, { uploadedFiles: 3, reusedFiles: 7 })
  t.equal(items.length, 11)
})

t.test('small files go together as one bundle that others can open', async (t) => {
  const { url, items } = await service(t)
  const files = Array.from({ length: 50 }, (_, at) => file(`${at}.txt`, `file ${at}`))
  const result = await uploading(url, join(t.testdir(), 'store'), { files, bundleSmallFiles: true })
  t.equal(items.length, 2)
  t.equal(items[0]?.tag('Bundle-Format'), 'binary')
  const bundle = unbundleData(items[0]?.payload as Buffer)
  t.equal(await bundle.verify(), true)
  t.strictSame(
    bundle.getIds(),
    result.fileResponses.map(({ id }) => id),
  )
  t.equal(bundle.items[7]?.rawData.toString(), 'file 7')
})

t.test('a layer that knows a file is used, one that throws is skipped and reported', async (t) => {
  const { url, items } = await service(t)
  const known = 'A'.repeat(43)
  const layers: FolderIndexLayer[] = [
    { name: 'broken', find: async () => Promise.reject(new Error('no disk')) },
    {
      name: 'knowing',
      isCurrent: true,
      find: async (keys) => {
        const { keyText } = await import('../../src/client/folder-index.js')
        return new Map(keys.slice(0, 1).map((key) => [keyText(key), known]))
      },
    },
  ]
  const files = [file('a', 'a'), file('b', 'b')]
  const result = await uploading(url, join(t.testdir(), 'store'), { files, folderIndex: layers })
  t.strictSame(result.folderIndexSummary.skippedLayers, ['broken: no disk'])
  t.equal(result.fileResponses[0]?.id, known)
  t.equal(items.length, 2)
  const gone = await uploading(url, join(t.testdir(), 'other'), {
    files,
    folderIndex: layers,
    isPresent: async () => false,
  })
  t.equal(gone.folderIndexSummary.reusedFiles, 0)
})

t.test('a folder of 100,000 files, most of them there already, duplicates among them', async (t) => {
  const { url, items } = await service(t)
  const { keyText } = await import('../../src/client/folder-index.js')
  const id = (at: number): string => `${String(at).padStart(42, 'x')}A`
  let calls = 0
  const layer: FolderIndexLayer = {
    name: 'knows most',
    isCurrent: true,
    find: async (keys) => {
      calls++
      return new Map(keys.slice(2000).map((key, at) => [keyText(key), id(at)]))
    },
  }
  const files = Array.from({ length: 100_000 }, (_, at) =>
    file(`d${at % 97}/${at}.txt`, `file ${at % 99_000}`),
  )
  const options = { files, folderIndex: [layer], bundleSmallFiles: true }
  const result = await uploading(url, join(t.testdir(), 'store'), options)
  t.equal(calls, 1)
  t.match(result.folderIndexSummary, { totalFiles: 100_000, uploadedFiles: 1000, reusedFiles: 99_000 })
  t.equal(items.length, 2, 'one bundle and a manifest')
  t.equal(Object.keys(result.manifest?.paths ?? {}).length, 100_000)
})

t.test('a file that changes after it was hashed is not uploaded under the tag of the old one', async (t) => {
  // Long files are read again; of short ones the memory may change that they were given in.
  const long = Buffer.alloc(300_000, 'a')
  const short = Buffer.from('abcd')
  for (const bytes of [long, short]) {
    for (const bundleSmallFiles of [false, true]) {
      const { url, items } = await service(t)
      const given = Buffer.from(bytes)
      const open = async function* () {
        yield given
      }
      const layer: FolderIndexLayer = {
        name: 'asked between hashing and upload',
        find: async () => {
          given[1] = 0
          return new Map()
        },
      }
      const files = [{ path: 'a', source: { size: bytes.length, open } }]
      const options = { files, bundleSmallFiles, folderIndex: [layer] }
      const failed = await uploading(url, join(t.testdir(), 'store'), options).catch(
        (error: ClientError) => error.code,
      )
      t.equal(failed, 'changed-while-read')
      t.equal(items.length, 0)
    }
  }
})

t.test('a short file is read once', async (t) => {
  for (const bundleSmallFiles of [false, true]) {
    const { url, items } = await service(t)
    let reads = 0
    const open = async function* () {
      yield Buffer.from(reads++ === 0 ? 'abcd' : 'abce')
    }
    const options = {
      files: [{ path: 'a', source: { size: 4, open } }],
      bundleSmallFiles,
      manifest: false,
    } as const
    await uploading(url, join(t.testdir(), 'store'), options)
    t.equal(reads, 1)
    t.equal(items.length, 1)
    t.ok(items[0]?.payload.includes('abcd'))
  }
})

t.test('what an upload service took is found by content, and only under the same tags', async (t) => {
  const { serviceLayer, keyText } = await import('../../src/client/folder-index.js')
  const [owner, other, id] = ['O', 'P', 'I'].map((one) => `${one.repeat(42)}A`) as [string, string, string]
  const tags = [{ name: 'File-SHA256', value: 'ab'.repeat(32) }]
  const server = await serving(t, ({ path, body }) => {
    if (path === '/v1/check-missing') {
      const { sha256 } = JSON.parse(body.toString()) as { sha256: string[] }
      return { json: { missing: [], found: Object.fromEntries(sha256.map((hash) => [hash, id])) } }
    }
    const node = { id, owner: { address: body.includes(owner) ? owner : other }, tags }
    return { json: { data: { transactions: { edges: [{ node }] } } } }
  })
  const layer = serviceLayer(server.url, server.url, owner, (url, init) => fetch(url, init))
  const key = { hash: 'ab'.repeat(32), tags }
  const typed = { ...key, tags: [...tags, { name: 'Content-Type', value: 'text/html' }] }
  const found = await layer.find([key, typed])
  t.strictSame(
    [...found].map(([text, one]) => [text, typeof one === 'string' ? one : one.id]),
    [[keyText(key), id]],
  )
  const none = await serving(t, () => ({ status: 404 }))
  t.equal(
    (await serviceLayer(none.url, none.url, owner, (url, init) => fetch(url, init)).find([key])).size,
    0,
  )
  const broken = await serving(t, () => ({ status: 500 }))
  await t.rejects(serviceLayer(broken.url, broken.url, owner, (url, init) => fetch(url, init)).find([key]))
})

t.test('the manifest chooses index and fallback as clients in use do', async (t) => {
  const ids = new Map([...'abc'].map((name) => [name, name.repeat(43)]))
  t.match(manifestOf(ids), { index: { path: 'a' }, fallback: { id: 'a'.repeat(43) } })
  t.match(manifestOf(ids, { indexFile: 'b', fallbackFile: 'c' }), {
    index: { path: 'b' },
    fallback: { id: 'c'.repeat(43) },
  })
  t.match(manifestOf(new Map([...ids, ['404.html', 'x'], ['index.html', 'y']])), {
    index: { path: 'index.html' },
    fallback: { id: 'x' },
  })
})

t.test('commands upload files and folders, and end with codes', async (t) => {
  const { url, items } = await service(t)
  const folder = t.testdir({ 'key.txt': '01'.repeat(32), site: { 'index.html': '<p>hi', 'x.css': 'p{}' } })
  const key = join(folder, 'key.txt')
  const site = join(folder, 'site')
  symlinkSync('/etc/passwd', join(site, 'link'))
  mkdirSync(join(site, 'empty folder'))
  t.strictSame((await readFolder(site)).leftOut, ['empty folder: an empty folder', 'link: a symbolic link'])
  const words = ['--upload', url, '--payment', url, '--gateway', url, '--key', key]
  const environment = { HOME: folder }
  const open = await sluice(['put', key, ...words], environment)
  t.equal(open.code, 2)
  t.match(open.err, /chmod 600/)
  const { chmodSync } = await import('node:fs')
  chmodSync(key, 0o600)
  const one = await sluice(['put', join(site, 'x.css'), '--json', ...words], environment)
  t.equal(one.code, 0, one.err)
  t.match(JSON.parse(one.out), { id: /^[\w-]{43}$/, winc: '0' })
  t.equal(items[0]?.tag('Content-Type'), 'text/css')
  const deployed = await sluice(['deploy', site, '--json', ...words], environment)
  t.equal(deployed.code, 0, deployed.err)
  t.match(JSON.parse(deployed.out), { totalFiles: 2, uploadedFiles: 2 })
  t.match(deployed.err, /left out: link/)
  writeFileSync(join(site, 'index.html'), '<p>ho')
  const second = await sluice(['deploy', site, '--json', ...words], environment)
  t.match(JSON.parse(second.out), { uploadedFiles: 1, reusedFiles: 1 })
  t.match((await sluice(['price', '100', ...words], environment)).out, /100 bytes: 0\.000000000005 credits/)
  t.equal((await sluice(['put', join(site, 'none'), ...words], environment)).code, 3)
  t.equal((await sluice(['put', key, ...words], environment)).code, 2, 'the key itself')
  const away = ['--upload', 'http://127.0.0.1:1', '--key', key]
  t.equal((await sluice(['put', join(site, 'x.css'), ...away], environment)).code, 5)
  t.match((await sluice(['completion', 'bash'])).out, /complete -F/)
})
