import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silentLog } from '../../../src/actor/log.js'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import {
  ManifestCache,
  type ManifestOptions,
  type Packed,
} from '../../../src/source/keeping/manifest-cache.js'
import {
  InlinePacker,
  type ManifestPacker,
  type PackingTask,
} from '../../../src/source/keeping/manifest-packer.js'
import { BlobStore, blobPath } from '../../../src/store/blobs.js'
import { PackedFile } from '../../../src/store/packed-file.js'
import { manifestLimits, sha256, someId } from '../rig.js'

/** Does the work, and counts it. */
class CountingPacker implements ManifestPacker {
  packed = 0
  checked = 0
  readonly #inner = new InlinePacker()

  pack(task: PackingTask): ReturnType<ManifestPacker['pack']> {
    this.packed += 1
    return this.#inner.pack(task)
  }

  check(task: Parameters<ManifestPacker['check']>[0]): Promise<boolean> {
    this.checked += 1
    return this.#inner.check(task)
  }
}

interface House {
  readonly folder: string
  readonly manifestCache: ManifestCache
  readonly packer: CountingPacker
  /** Another process on the same folder. */
  again(more?: Partial<ManifestOptions>): Promise<House>
  /** Text of a manifest on disk. */
  write(text: string): { readonly path: string; readonly digest: Uint8Array }
}

async function house(t: Test, folder = t.testdir(), more: Partial<ManifestOptions> = {}): Promise<House> {
  const packer = new CountingPacker()
  const options = { limits: manifestLimits, cacheMaxBytes: 2 ** 20, flightsMax: 4, ...more }
  const manifestCache = new ManifestCache(
    new BlobStore(join(folder, 'manifests')),
    packer,
    silentLog,
    options,
  )
  await manifestCache.prepare()
  await manifestCache.takeOver(() => true)
  return {
    folder,
    manifestCache,
    packer,
    again: (other = {}) => house(t, folder, other),
    write(text) {
      const digest = sha256(Buffer.from(text))
      const path = join(folder, digest.toString('hex'))
      writeFileSync(path, text)
      return { path, digest }
    },
  }
}

const id = someId()
const textOf = (path: string): string => JSON.stringify({ paths: { [path]: { id } } })

function sure(packed: Packed | Refusal): Packed {
  if (isRefusal(packed)) throw new Error(packed.message)
  return packed
}

/** What the packed form says about a path, or why there is none. */
function resolved({ path }: Packed, wanted: string): unknown {
  const file = PackedFile.open(path)
  if (file === undefined) return 'no file'
  if (isRefusal(file)) return file.message
  const found = file.resolve(wanted)
  file.close()
  return typeof found === 'string' ? found : found.id
}

t.test('a text is parsed once, for all who ask at once and for all who ask later', async (t) => {
  const { manifestCache, packer, write } = await house(t)
  const text = write(textOf('a'))
  const all = await Promise.all(Array.from({ length: 50 }, () => manifestCache.bring(text)))
  t.ok(all.every((one) => sure(one).path === sure(all[0] as Packed).path))
  t.equal(resolved(sure(await manifestCache.bring(text)), 'a'), id)
  t.equal(packer.packed, 1)
  t.equal(
    sure(await manifestCache.bring({ ...text, digest: undefined })).digest.toString(),
    text.digest.toString(),
  )
})

t.test('the next process reads what is there once, and parses nothing', async (t) => {
  const before = await house(t)
  const text = before.write(textOf('a'))
  await before.manifestCache.bring(text)
  const { manifestCache, packer } = await before.again()
  t.equal(manifestCache.bytes, before.manifestCache.bytes)
  for (let time = 0; time < 3; time += 1) t.equal(resolved(sure(await manifestCache.bring(text)), 'a'), id)
  t.strictSame([packer.packed, packer.checked], [0, 1])
})

t.test('a packed form that is damaged, truncated, or made under other limits is made again', async (t) => {
  const first = await house(t)
  const text = first.write(textOf('a'))
  const { path } = sure(await first.manifestCache.bring(text))
  const sound = readFileSync(path)
  const damages: Buffer[] = [sound.subarray(0, -1), sound.subarray(0, 10), Buffer.alloc(0)]
  for (const at of [3, 20, 75, 180, sound.length - 1]) {
    const damaged = Buffer.from(sound)
    damaged[at] = (damaged[at] ?? 0) ^ 1
    damages.push(damaged)
  }
  for (const damaged of damages) {
    writeFileSync(path, damaged)
    const { manifestCache, packer } = await first.again()
    t.equal(resolved(sure(await manifestCache.bring(text)), 'a'), id)
    t.equal(packer.packed, 1)
    t.same(readFileSync(path), sound)
  }
  const { manifestCache, packer } = await first.again({ limits: { ...manifestLimits, pathsMax: 5 } })
  await manifestCache.bring(text)
  t.equal(packer.packed, 1)
  await manifestCache.bring(text, true)
  t.equal(packer.packed, 2, 'who finds it damaged has it made again')
})

t.test('half written files of a killed process are removed, and never read', async (t) => {
  const first = await house(t)
  const text = first.write(textOf('a'))
  writeFileSync(join(first.folder, 'manifests', 'tmp', 'half'), 'SLMANIF1')
  const { manifestCache, packer } = await first.again()
  t.notOk(existsSync(join(first.folder, 'manifests', 'tmp', 'half')))
  t.equal(resolved(sure(await manifestCache.bring(text)), 'a'), id)
  t.equal(packer.packed, 1)
})

t.test(
  'a packed form is removed with its content, and the least recently used above the limit of bytes',
  async (t) => {
    const first = await house(t)
    const texts = ['a', 'b', 'c', 'd'].map((path) => first.write(textOf(path)))
    const forms: Packed[] = []
    for (const text of texts) forms.push(sure(await first.manifestCache.bring(text)))
    t.ok(statSync(forms[0]?.path ?? '').size < 4096)
    // A file takes whole blocks of the disk: millions of small forms are no small thing.
    const each = 4096
    t.equal(first.manifestCache.bytes, 4 * each)
    await first.manifestCache.drop(texts[3]?.digest ?? new Uint8Array())
    t.notOk(existsSync(forms[3]?.path ?? ''))
    const kept = Buffer.from(texts[0]?.digest ?? []).toString('hex')
    const next = new ManifestCache(
      new BlobStore(join(first.folder, 'manifests')),
      new InlinePacker(),
      silentLog,
      { limits: manifestLimits, cacheMaxBytes: 2 * each, flightsMax: 4 },
    )
    await next.prepare()
    await next.takeOver((digest) => Buffer.from(digest).toString('hex') === kept)
    t.equal(next.bytes, each, 'what belongs to no content is not taken over')
    for (const text of texts.slice(0, 3)) await next.bring(text)
    t.equal(next.bytes, 2 * each)
    t.notOk(existsSync(forms[0]?.path ?? ''), 'the longest unused went')
    t.ok(existsSync(forms[2]?.path ?? ''))
  },
)

t.test('a text that is gone or has changed is refused, and no form is written', async (t) => {
  const { manifestCache, folder, write } = await house(t)
  const text = write(textOf('a'))
  writeFileSync(text.path, textOf('b'))
  t.match(await manifestCache.bring(text), { refused: 'upstream' })
  t.match(await manifestCache.bring({ path: join(folder, 'nowhere'), digest: text.digest }), {
    refused: 'upstream',
  })
  t.notOk(existsSync(blobPath(join(folder, 'manifests'), text.digest)))
  t.equal(manifestCache.bytes, 0)
})

t.test('a malformed manifest is parsed once; one too many at once is refused as busy', async (t) => {
  const { manifestCache, packer, write } = await house(t)
  const broken = write('{"paths":')
  for (let time = 0; time < 3; time += 1) {
    t.equal(resolved(sure(await manifestCache.bring(broken)), 'a'), 'manifest: not a JSON object')
  }
  t.equal(packer.packed, 1)
  const outcomes = await Promise.all(
    ['1', '2', '3', '4', '5'].map((path) => manifestCache.bring(write(textOf(path)))),
  )
  t.equal(outcomes.filter((one) => isRefusal(one) && one.refused === 'busy').length, 1)
})
