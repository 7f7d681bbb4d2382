import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { claimFolder, findPort } from '../../src/actor/claim.js'

t.test('a folder has one owner at a time', async (t) => {
  const folder = t.testdir()
  const claim = await claimFolder(`${folder}/new/deep`)
  await t.rejects(claimFolder(`${folder}/new/deep`), /another sluice is running/)
  const other = await claimFolder(`${folder}/other`)
  await claim.release()
  const again = await claimFolder(`${folder}/new/deep`)
  await again.release()
  await other.release()
})

t.test('a port that is taken is told by the name of its setting', async (t) => {
  const port = await findPort('127.0.0.1', 0, 'PORT')
  t.equal(await findPort('127.0.0.1', port, 'PORT'), port)
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  await t.rejects(findPort('127.0.0.1', port, 'PORT'), new RegExp(`port ${port} is taken.*set PORT`))
  server.close()
  await once(server, 'close')
  t.equal(await findPort('127.0.0.1', port, 'PORT'), port)
  await t.rejects(findPort('192.0.2.1', port, 'PORT'), /cannot listen on 192\.0\.2\.1/)
  await t.rejects(findPort('192.0.2.1', 0, 'PORT'), /cannot listen on 192\.0\.2\.1/)
})

t.test('a port that was found is found by nobody else, though nobody listens on it yet', async (t) => {
  const found = await Promise.all(Array.from({ length: 200 }, () => findPort('127.0.0.1', 0, 'PORT')))
  t.equal(new Set(found).size, 200)
})
