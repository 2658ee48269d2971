import math
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib.errors import PanoramaError
from geocalib_lab.training.worlds import panoramas, things
from geocalib_lab.training.worlds.aloft import aloft
from geocalib_lab.training.worlds.desks import desk
from geocalib_lab.training.worlds.generator import MAKERS, render_world, sphere_rays
from geocalib_lab.training.worlds.scene import Scene, surface
from geocalib_lab.training.worlds.shading import cast_shadows, lit
from geocalib_lab.training.worlds.solids import Light, Look, Shape, Sky, Solid, World, turned
from geocalib_lab.training.worlds.stage import Stage
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.tracing import nearest
from geocalib_lab.training.worlds.windows import sphere_windows

WIDTH, HEIGHT = 360, 180
"""One degree a pixel."""

EYE = (0.4, -1.6, 0.3)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library.draw(64, 3, "cpu")


def solid(shape: Shape, centre: tuple[float, float, float], axes: np.ndarray) -> Solid:
    return Solid(shape, centre, axes, Look(0), Look(0), Look(0))


def traced(
    library: Library, solids: list[Solid], eye: tuple[float, float, float] = EYE
) -> tuple[Tensor, Tensor]:
    """Distances and numbers (HEIGHT, WIDTH) of the solids that a panorama sees."""
    rows = slice(0, HEIGHT)
    scene = Scene.create(solids, eye, "cpu")
    rays = sphere_rays(WIDTH, HEIGHT, rows, torch.device("cpu"))
    return nearest(scene, library, rays, sphere_windows(scene.corners, WIDTH, HEIGHT, rows))


def everywhere(count: int) -> list[list[tuple[slice, slice]]]:
    return [[(slice(0, HEIGHT), slice(0, WIDTH))] for _ in range(count)]


def pixel_of(point: np.ndarray) -> tuple[float, float]:
    """Column and row where a panorama shows a point, from the eye."""
    x, y, z = point
    longitude, latitude = math.atan2(x, z), math.atan2(-y, math.hypot(x, z))
    return WIDTH * (longitude / (2 * math.pi) + 0.5), HEIGHT * (0.5 - latitude / math.pi)


class TestGeometry:
    @pytest.mark.parametrize("yaw", [0.3, 1.2, 2.9])
    @pytest.mark.parametrize("centre", [(1.0, -0.7, 4.0), (-3.0, -3.0, -1.0), (0.5, 0.0, -4.0)])
    def test_corners_of_a_box_bound_what_is_seen_of_it(
        self, library: Library, yaw: float, centre: tuple[float, float, float]
    ) -> None:
        box = solid(Shape.BOX, centre, turned(yaw) @ np.diag([0.8, 0.5, 1.1]))
        seen = torch.isfinite(traced(library, [box])[0])
        columns, _ = np.array([pixel_of(corner - np.array(EYE)) for corner in box.corners()]).T
        behind = centre[2] < 0 and abs(centre[0]) < 1
        found = torch.nonzero(seen.any(0)).flatten().numpy() + 0.5
        if behind:
            # The box is at the seam: count from straight behind.
            found, columns = (found + 180) % 360, (columns + 180) % 360
        assert found.min() == pytest.approx(columns.min(), abs=1.0)
        assert found.max() == pytest.approx(columns.max(), abs=1.0)

    def test_a_corner_is_where_it_should_be(self, library: Library) -> None:
        box = solid(Shape.BOX, (EYE[0], -1.0, EYE[2] + 5), np.diag([1.0, 1.0, 1.0]))
        seen = torch.isfinite(traced(library, [box])[0])
        # The front's upper corners are at (+-1, -0.4, 4) from the eye.
        column, row = pixel_of(np.array([1.0, -0.4, 4.0]))
        assert seen[math.floor(row) + 1, math.floor(column) - 1]
        assert not seen[math.floor(row) - 1, math.floor(column) - 1]
        assert not seen[math.floor(row) + 1, math.floor(column) + 1]

    def test_upright_edges_keep_their_column(self, library: Library) -> None:
        box = solid(Shape.BOX, (3.0, -2.0, 4.0), turned(0.5) @ np.diag([0.6, 2.0, 0.9]))
        seen = torch.isfinite(traced(library, [box])[0])
        middle = seen[60:110]
        assert middle.any(1).all()
        left = middle.int().argmax(1)
        right = middle.shape[1] - middle.flip(1).int().argmax(1)
        assert len(set(left.tolist())) == 1
        assert len(set(right.tolist())) == 1

    def test_the_ground_ends_at_the_middle_row(self, library: Library) -> None:
        stage = Stage(library, random.Random(0))
        stage.ground(Look(0, (1.0, 1.0)))
        for height in (1.0, 40.0):
            distance, _ = traced(library, stage.solids, (0.0, -height, 0.0))
            assert torch.isinf(distance[: HEIGHT // 2]).all()
            below = math.radians(0.5 + 20)
            assert torch.isfinite(distance[HEIGHT // 2 :]).all()
            row = distance[HEIGHT // 2 + 20]
            assert row.numpy() == pytest.approx(height / math.sin(below), rel=1e-4)

    def test_windows_hide_nothing(self, library: Library) -> None:
        draw = np.random.default_rng(4)
        shapes = [Shape.BOX, Shape.BALL, Shape.PILLAR]
        solids = []
        for index in range(24):
            axes = turned(*draw.uniform(-3, 3, 3)) @ np.diag(draw.uniform(0.1, 2.5, 3))
            x, y, z = draw.uniform(-5, 5, 3).tolist()
            solids.append(solid(shapes[index % 3], (x, y, z), axes))
        scene = Scene.create(solids, EYE, "cpu")
        rays = sphere_rays(WIDTH, HEIGHT, slice(0, HEIGHT), torch.device("cpu"))
        whole = nearest(scene, library, rays, everywhere(len(solids)))
        windows = sphere_windows(scene.corners, WIDTH, HEIGHT, slice(0, HEIGHT))
        assert sum(len(part) for part in windows) >= len(solids)
        torch.testing.assert_close(nearest(scene, library, rays, windows), whole)

    @pytest.mark.parametrize("shape", [Shape.BOX, Shape.BALL, Shape.PILLAR])
    def test_points_met_lie_on_the_surface(self, library: Library, shape: Shape) -> None:
        axes = turned(0.4, 0.3, -0.2) @ np.diag([1.0, 0.6, 1.4])
        thing = solid(shape, (1.0, -1.0, 3.5), axes)
        distance, _ = traced(library, [thing])
        rays = sphere_rays(WIDTH, HEIGHT, slice(0, HEIGHT), torch.device("cpu"))
        direction = torch.stack([d.expand(HEIGHT, WIDTH) for d in rays.direction], -1)  # type: ignore[union-attr]
        points = (distance[..., None] * direction)[torch.isfinite(distance)].double().numpy()
        local = np.linalg.solve(axes, (points + np.array(EYE) - np.array(thing.centre)).T)
        level = np.hypot(local[0], local[2])
        size = {
            Shape.BOX: np.abs(local).max(0),
            Shape.BALL: np.linalg.norm(local, axis=0),
            Shape.PILLAR: np.maximum(level, np.abs(local[1])),
        }[shape]
        assert len(points) > 100
        assert size == pytest.approx(1, abs=1e-4)

    def test_a_room_is_seen_all_around(self, library: Library) -> None:
        walls = solid(Shape.ROOM, (0.0, -1.5, 0.0), turned(0.7) @ np.diag([3.0, 1.5, 2.0]))
        distance, number = traced(library, [walls])
        assert torch.isfinite(distance).all()
        assert (number == 0).all()
        assert distance[-1].mean().item() == pytest.approx(1.6, rel=1e-3)

    def test_normals_are_those_of_the_faces(self, library: Library) -> None:
        axes = turned(0.4, 0.2, 0.1) @ np.diag([1.0, 0.6, 1.4])
        box = solid(Shape.BOX, (1.0, -1.0, 3.5), axes)
        scene = Scene.create([box], EYE, "cpu")
        distance, number = traced(library, [box])
        seen = torch.isfinite(distance)
        rays = sphere_rays(WIDTH, HEIGHT, slice(0, HEIGHT), torch.device("cpu"))
        met = surface(scene, rays, torch.where(seen, distance, 1.0), number)
        normals = torch.stack(met.normal, -1)[seen].double().numpy()
        faces = (axes / np.linalg.norm(axes, axis=0)).T
        assert np.abs(normals @ faces.T).max(1) == pytest.approx(1, abs=1e-4)


def flat_world(solids: tuple[Solid, ...], light: Light) -> World:
    grey = (0.5, 0.5, 0.5)
    sky = Sky(grey, grey, grey, 0, 0.0, 1.0, 1.0, 0.0)
    return World("test", (0.0, -1.6, 0.0), solids, sky, light)


class TestShadows:
    def test_a_box_throws_its_shadow_away_from_the_light(self, library: Library) -> None:
        box = solid(Shape.BOX, (0.0, -1.0, 5.0), np.diag([1.0, 1.0, 1.0]))
        down = math.sqrt(0.5)
        world = flat_world((box,), Light((0.0, -down, -down), (1.0, 1.0, 1.0), 0.0, 20.0))
        shadows = cast_shadows(world, library, 512, torch.device("cpu"))
        # The light comes from above and before, at 45 degrees: two metres of box, two of shadow.
        z = torch.tensor([3.5, 6.5, 7.5, 8.5])
        ground = (torch.zeros(4), torch.full((4,), 1.6), z)
        assert lit(shadows, ground).tolist() == [1, 0, 0, 1]


class TestWorlds:
    @pytest.mark.parametrize("maker", dict.fromkeys(MAKERS), ids=lambda maker: maker.__name__)
    def test_every_kind_is_a_plausible_picture(self, library: Library, maker) -> None:
        for seed in range(2):
            world = maker(library, random.Random(seed))
            assert world.kind.startswith("synthetic_")
            assert len(world.solids) < 250
            image = render_world(world, library, 96, 1)
            assert image.shape == (48, 96, 3)
            assert image.dtype == torch.uint8
            assert (image.amax(-1) <= 2).float().mean() < 0.01
            assert image.float().std() > 12

    @pytest.mark.parametrize("maker", dict.fromkeys(MAKERS), ids=lambda maker: maker.__name__)
    def test_the_eye_is_in_the_open(self, library: Library, maker) -> None:
        for seed in range(10):
            world = maker(library, random.Random(seed))
            for thing in world.solids:
                assert thing.holds(world.eye, 0.1) == (thing.shape is Shape.ROOM)

    @pytest.mark.parametrize("maker", [desk, aloft])
    def test_the_same_numbers_make_the_same_world(self, library: Library, maker) -> None:
        first, again, other = (maker(library, random.Random(seed)) for seed in (4, 4, 5))
        assert (first.eye, first.light, first.sky) == (again.eye, again.light, again.sky)
        assert [s.centre for s in first.solids] == [s.centre for s in again.solids]
        assert first.eye != other.eye

    def test_rows_do_not_depend_on_how_many_are_done_at_once(
        self, library: Library, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = MAKERS[0](library, random.Random(5))
        whole = render_world(world, library, 64, 2)
        monkeypatch.setattr("geocalib_lab.training.worlds.generator.RAYS_AT_ONCE", 64 * 2 * 10)
        parts = render_world(world, library, 64, 2)
        assert (whole.int() - parts.int()).abs().max() <= 1


THINGS = dict.fromkeys(
    thing
    for kinds in (things.OFFICE, things.KITCHEN, things.WORKSHOP, things.NURSERY)
    for thing, _ in kinds
)


class TestThings:
    @pytest.mark.parametrize("thing", [*THINGS, things.screen], ids=lambda thing: thing.__name__)
    def test_stand_on_their_surface(self, library: Library, thing: things.Thing) -> None:
        for seed in range(10):
            stage = Stage(library, random.Random(seed))
            thing(stage.at(0.3, -0.2, 0.7), stage.rng, 0.75)
            # Balls may be pressed in, and thin rods may dip with an edge.
            firm = [s.corners() for s in stage.solids if s.shape is not Shape.BALL]
            heights = -np.concatenate(firm or [stage.solids[0].corners()])[:, 1]
            assert heights.min() > 0.75 - 0.01
            assert 0 < heights.max() - 0.75 < 0.75

    def test_keep_apart_and_within(self, library: Library) -> None:
        stage = Stage(library, random.Random(2))
        things.scatter(stage.at(0, 0), stage.rng, (1.0, 0.6), 0.7, 60, [(things.bottle, 0.08)])
        feet = [s for s in stage.solids if s.corners()[:, 1].max() == pytest.approx(-0.7)]
        places = np.array([foot.centre for foot in feet])
        assert len(feet) > 8
        assert (np.abs(places[:, [0, 2]]) <= [0.5, 0.3]).all()
        gaps = np.linalg.norm(places[:, None] - places, axis=-1) + np.eye(len(feet))
        assert gaps.min() > 0.1


def below_horizon(library: Library, world: World, degrees: int) -> Tensor:
    """Distances (WIDTH,) to what is seen so far below the horizon."""
    distance, _ = traced(library, list(world.solids), world.eye)
    return distance[HEIGHT // 2 + degrees]


class TestDesks:
    def test_things_are_within_reach(self, library: Library) -> None:
        worlds = [desk(library, random.Random(seed)) for seed in range(6)]
        near = torch.stack([below_horizon(library, world, 50) for world in worlds]) < 1.3
        assert near.any(1).all()
        assert near.float().mean() > 0.4

    def test_the_room_is_upright(self, library: Library) -> None:
        for seed in range(6):
            room = desk(library, random.Random(seed)).solids[0]
            assert room.shape is Shape.ROOM
            assert room.axes[[0, 2], 1].tolist() == [0, 0]
            assert room.axes[1, [0, 2]].tolist() == [0, 0]

    def test_are_full_of_things_at_all_angles(self, library: Library) -> None:
        for seed in range(6):
            world = desk(library, random.Random(seed))
            away = [np.linalg.norm(np.subtract(s.centre, world.eye)) for s in world.solids]
            near = [s for s, metres in zip(world.solids, away, strict=True) if metres < 1.5]
            yaws = {round(math.degrees(math.atan2(s.axes[0, 2], s.axes[2, 2]))) for s in near}
            assert len(near) > 20
            assert len(yaws) > 6


class TestAloft:
    def test_the_horizon_is_level_and_free(self, library: Library) -> None:
        for seed in range(4):
            world = aloft(library, random.Random(seed))
            distance, _ = traced(library, list(world.solids), world.eye)
            assert torch.isfinite(distance[HEIGHT // 2 :]).all()
            assert torch.isinf(distance[HEIGHT // 2 - 1]).float().mean() > 0.25

    def test_the_ground_is_far_below(self, library: Library) -> None:
        heights = [-aloft(library, random.Random(seed)).eye[1] for seed in range(40)]
        assert min(heights) >= 10
        assert max(heights) > 50
        assert max(heights) < 120


class TestPanoramas:
    def test_the_seed_decides(self) -> None:
        first, second = (image for image, _ in panoramas(2, 64, 1, "cpu", 1))
        again, other = (next(panoramas(1, 64, seed, "cpu", 1))[0] for seed in (1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, second)
        assert not torch.equal(first, other)

    @pytest.mark.parametrize(
        ("count", "width", "supersample", "told"),
        [(0, 128, 2, "least is 1"), (2, 63, 2, "even"), (2, 32, 2, "even"), (1, 128, 0, "least 1")],
    )
    def test_impossible_wishes(self, count: int, width: int, supersample: int, told: str) -> None:
        with pytest.raises(PanoramaError, match=told):
            panoramas(count, width, 0, "cpu", supersample)
