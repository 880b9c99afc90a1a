import aiohttp
import pytest

from adapter.cli.demonstration.face import Face


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def face():
    face = Face(lambda: b"vllm:num_requests_running 3\n")
    yield face
    await face.close()


async def test_a_face_refuses_until_it_is_opened(face, session):
    with pytest.raises(aiohttp.ClientConnectorError):
        await session.get(face.url)

    await face.open()
    async with session.get(face.url) as answer:
        body = await answer.read()

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
    assert body == b"vllm:num_requests_running 3\n"


async def test_health_is_fine_and_anything_else_is_not_there(face, session):
    await face.open()
    root = face.url.removesuffix("/metrics")

    async with session.get(f"{root}/health") as health, session.get(f"{root}/nothing") as other:
        assert (health.status, other.status) == (200, 404)


async def test_each_face_has_a_port_of_its_own(face):
    other = Face(lambda: b"")

    assert other.url != face.url
    await other.close()


async def test_a_closed_face_refuses_again(face, session):
    """Kept-alive connections end as well: a scraper must not go on talking to a dead pod."""
    await face.open()
    async with session.get(face.url) as answer:
        await answer.read()

    await face.close()

    with pytest.raises(aiohttp.ClientError):
        await session.get(face.url)
