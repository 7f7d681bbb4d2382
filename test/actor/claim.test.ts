import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import t from 'tap'
import { claimFolder, findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'

t.test('a folder has one owner at a time', async (t) => {
  const folder = t.testdir({ one: {}, other: {} })
  const claim = await claimFolder(`${folder}/one`)
  await t.rejects(claimFolder(`${folder}/other/../one`), /another sluice is running/)
  const other = await claimFolder(`${folder}/other`)
  await claim.release()
  const again = await claimFolder(`${folder}/one`)
  await again.release()
  await other.release()
})

t.test('the claim of a killed process is taken over', async (t) => {
  const folder = t.testdir()
  const child = spawn(process.execPath, ['-e', `require('net').createServer().listen('.claim')`], {
    cwd: folder,
    stdio: 'ignore',
  })
  await eventually('the folder is claimed', () => existsSync(`${folder}/.claim`))
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.ok(existsSync(`${folder}/.claim`))
  const claim = await claimFolder(folder)
  await claim.release()
})

t.test('a container with a network of its own does not get a folder that is in use', async (t) => {
  const folder = t.testdir()
  const script = `import(process.argv[1]).then(async ({ claimFolder }) => {
    const outcome = await claimFolder(process.argv[2]).then(() => 'claimed', (error) => error.message)
    process.stdout.write(outcome)
    process.exit(0)
  })`
  const module = new URL('../../src/actor/claim.js', import.meta.url).href
  const elsewhere = (): { status: number | null; stdout: string } =>
    spawnSync('unshare', ['--map-root-user', '--net', process.execPath, '-e', script, module, folder], {
      encoding: 'utf8',
    })
  if (elsewhere().stdout !== 'claimed') {
    t.comment('this machine lets nobody have a network of their own')
    return
  }
  const claim = await claimFolder(folder)
  t.match(elsewhere().stdout, /another sluice is running/)
  await claim.release()
  t.equal(elsewhere().stdout, 'claimed')
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
