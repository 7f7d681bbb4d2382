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
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await t.rejects(findPort('127.0.0.1', port, 'PORT'), new RegExp(`port ${port} is taken.*set PORT`))
  server.close()
  await once(server, 'close')
  t.equal(await findPort('127.0.0.1', port, 'PORT'), port)
  t.match(await findPort('127.0.0.1', 0, 'PORT'), Number)
  t.not(await findPort('127.0.0.1', 0, 'PORT'), 0)
  await t.rejects(findPort('192.0.2.1', port, 'PORT'), /cannot listen on 192\.0\.2\.1/)
})
