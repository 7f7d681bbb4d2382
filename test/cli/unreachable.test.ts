import t from 'tap'
import { sluice } from '../flow/running.js'

/** Nobody listens there: it belongs to no service, and only root may. */
const port = '2'

t.test('a command that has no answer names the address, the reason and the way on', async (t) => {
  const environment = { DATA_PATH: t.testdir() }
  const uploads = await sluice(['uploads', 'status'], { ...environment, UPLOAD_PORT: port })
  t.equal(uploads.code, 5)
  t.equal(
    uploads.err,
    `sluice uploads: http://127.0.0.1:${port} does not answer: connect ECONNREFUSED 127.0.0.1:${port}. ` +
      'Start the service, or name its address by --upload\n',
  )
  const promotion = ['promotion', 'SPRING', '--percent', '10']
  const declared = await sluice(promotion, { ...environment, PAYMENT_PORT: port })
  t.equal(declared.code, 5)
  t.match(declared.err, `http://127.0.0.1:${port} does not answer: connect ECONNREFUSED`)
  t.match(declared.err, '--payment')
  const named = await sluice([...promotion, '--payment', `http://127.0.0.1:${port}`], environment)
  t.match(named.err, `:${port} does not answer`)
})

t.test('a name whose addresses all refuse has a reason, too', async (t) => {
  const { code, err } = await sluice(['uploads', 'status', '--upload', `http://localhost:${port}`], {
    DATA_PATH: t.testdir(),
  })
  t.equal(code, 5)
  t.match(err, /does not answer: connect ECONNREFUSED/)
})

t.test('a gateway that does not answer is told of once', async (t) => {
  const id = `${'B'.repeat(42)}A`
  const { code, err } = await sluice(['get', id, '--gateway', `http://127.0.0.1:${port}`])
  t.equal(code, 5)
  t.equal(err.split(`/raw/${id} `).length - 1, 1, err)
})
