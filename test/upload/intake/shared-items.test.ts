/** What could not be listed for other machines at once is listed later, also where the disk refuses to give back some of it. */
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ItemElsewhere, ItemsElsewhere } from '../../../src/cluster/items-elsewhere.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { tagOf } from '../../../src/format/tag.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { answered, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const idOf = (item: Uint8Array): Id => idOfBytes(sha256(item.subarray(2, 66)))
const inner = Buffer.from(signItem(signer, {}, Buffer.from('inner')))
const bundle = Buffer.from(signItem(signer, { tags }, encodeBundle([{ id: idOf(inner), bytes: inner }])))
const single = Buffer.from(signItem(signer, {}, Buffer.from('single')))

/** A machine whose cluster's database is away until `answers`. */
async function machine(t: Test) {
  const environment = openUploadTables(scratch('machine'))
  t.teardown(() => environment.close())
  const folder = scratch('uploads')
  let isThere = false
  const listed = new Set<Id>()
  const machines: ItemsElsewhere = {
    add: async (items: readonly ItemElsewhere[]) => {
      if (isThere) for (const { id } of items) listed.add(idOfBytes(id))
      return isThere
    },
    has: async () => false,
    receiptOf: async () => 'none',
    beginSale: async () => '1',
    addToSale: async () => true,
    renewSales: async (bundles) => new Set(bundles),
    endSales: async () => true,
    sweepSales: async () => false,
  }
  const rig = await uploadRig(t, environment, { isRich: true, folder, machines })
  for (const item of [bundle, single]) await accepted(t, rig, item)
  await eventually('both wait', () => rig.uploads.unlisted.some(10).length === 2)
  const log = join(folder, 'log')
  const [file = ''] = readdirSync(log)
  // Timers of the system's clock keep no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(awake))
  return {
    rig,
    listed,
    file: join(log, file),
    answers: () => {
      isThere = true
    },
  }
}

async function accepted(t: Test, rig: UploadRig, item: Buffer): Promise<void> {
  const headers = { 'content-length': String(item.length) }
  t.equal((await answered(rig, '/tx', requestOf('POST', '/tx', { headers, pieces: [item] }))).status, 200)
}

t.test('a bundle whose bytes are gone ends nothing', async (t) => {
  const { rig, listed, file, answers } = await machine(t)
  rmSync(file)
  answers()
  await eventually('nothing waits', () => rig.uploads.unlisted.some(10).length === 0)
  t.strictSame([...listed].sort(), [idOf(bundle), idOf(single)].sort())
})

t.test('a bundle that cannot be read now is listed later, and keeps no other item waiting', async (t) => {
  const { rig, listed, file, answers } = await machine(t)
  renameSync(file, `${file}.away`)
  mkdirSync(file)
  answers()
  await eventually('the other item is listed', () => rig.uploads.unlisted.some(10).length === 1)
  t.notOk(listed.has(idOf(inner)))
  rmdirSync(file)
  renameSync(`${file}.away`, file)
  await eventually('nothing waits', () => rig.uploads.unlisted.some(10).length === 0)
  t.ok(listed.has(idOf(inner)))
})
