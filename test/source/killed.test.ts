import { fork } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { inOrder } from '../../src/source/upstream/in-order.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { drain, rig, sure, upstream } from './rig.js'

t.test('a process killed while caching leaves no wrong byte behind', async (t) => {
  const bodies = Array.from({ length: 8 }, () => randomBytes(700_000))
  let served = 0
  const server = await upstream((_, response) => {
    const body = bodies[served++ % bodies.length]!
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, 350_000))
    setTimeout(() => response.end(body.subarray(350_000)), random() * 20)
  })
  const path = scratch('killed')
  for (let round = 0; round < 3; round += 1) {
    const child = fork(fileURLToPath(new URL('./killed-fetcher.js', import.meta.url)), [path, server.url], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const ended = once(child, 'exit')
    await once(child, 'message')
    await pause(20 + round * 30)
    child.kill('SIGKILL')
    await ended
  }
  const house = await rig({ source: inOrder('none', []), path })
  t.same(await house.drafts(), [], 'halves are swept at the start')
  const files = (await readdir(join(path, 'blobs'), { recursive: true, withFileTypes: true })).filter((one) =>
    one.isFile(),
  )
  t.ok(files.length > 0, 'something was cached')
  for (const file of files) {
    const bytes = await readFile(join(file.parentPath, file.name))
    t.equal(createHash('sha256').update(bytes).digest('base64url'), basename(file.name))
  }
  let recorded = 0
  for (const id of house.catalog.unsettled(undefined, 1000)) {
    const known = house.catalog.attributes(id)
    if (known?.digest === undefined || house.catalog.blobSize(known.digest) === undefined) continue
    recorded += 1
    const edge = house.edge()
    const opened = sure(await edge.open(id))
    t.equal(opened.source, 'cache', 'what is on record is on disk')
    const content = edge.grow(opened)
    t.equal((await drain(content, 0, content.sizeBytes)).length, 700_000)
    content.close()
  }
  t.ok(recorded > 0)
  await house.close()
  await server.close()
})
