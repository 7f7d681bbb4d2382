import { join } from 'node:path'
import t from 'tap'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { migrated, partsMachine } from '../cluster/parts-rig.js'
import { MemoryObjects } from '../engines/memory-objects.js'
import { twoMachines } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { uploadRig } from '../upload/upload-rig.js'
import { conformUploadsInParts } from './uploads-in-parts.js'

t.test('one machine', async (t) => {
  const environment = openUploadTables(join(scratch('uploads'), 'uploads'))
  t.teardown(() => environment.close())
  await conformUploadsInParts(t, async (t) => {
    const one = await uploadRig(t, environment, { isRich: true })
    return { one, other: one }
  })
})

void twoMachines(async (t, { url }) => {
  await migrated(url)
  const store = new MemoryObjects()
  await conformUploadsInParts(t, async (t) => {
    const [one, other] = [await partsMachine(t, url, store), await partsMachine(t, url, store)]
    return { one: one.rig, other: other.rig }
  })
  await eventually('no part is left behind', async () => store.objects.size === 0)
})
