"""Straight lines as evidence about the camera: edges of the photo, in the same estimate.

The network's answer is the prior. Segments that follow the vertical or level directions, and long
edges that must be straight, sharpen it. This page is the whole method; each step names its module.

Segments (``detect``)
    A segment is a pair of end points in pixels of the photo, each with a noise of about a third of
    a pixel across it. Segments that continue each other are chained to long edges, and an edge is
    averaged to one number, its sagitta: how far its middle is off its chord.

Distortion (``distortion``)
    Seen through the right lens a straight edge has rays N in one plane, n . N = 0, so its sagitta
    e is 0. The posterior of the distortion k, for a given focal length, is summed up on a grid:
    log p(k) = -3/2 sum_j log(1 + e_j(k)^2 / 2 s_j^2) / 3 + log prior(k), with heavy tails because
    many edges are really curved. A pinhole may bend a little meanwhile.

Residuals (``residuals``)
    A direction d of the world, at the ray N = (m, z) of a segment's middle, is seen along
    v = diag(aspect, 1) (h m - q d_xy), with h = d_z - 2 z' m . d_xy and q = z - 2 s z'. The
    residual r is the sine of the angle between v and the segment. Directions are the vertical g
    and level ones: a heading h, and g x h at a right angle to it.

Mixture (``residuals``)
    Each segment follows one of K directions or none (clutter, 40%). Against its direction, r is
    normal with the variance of the noise of its ends and of lines that miss their direction by
    0.2 degrees; clutter points anywhere. The probability of each direction is the density times
    its share, over the sum of all.

Prior (``prior``) and unknowns (``unknowns``)
    The unknowns x are gravity, log f, distortion, the principal point where it is free, and the
    headings. The network's cost is Student's, 4 log(1 + |x - x0|^2 / 4) in units of its
    covariance: stiff near its answer, yielding to sure evidence far from it. Images may share a
    camera or a gravity; the normal equations then have the shape of an arrow.

Descent (``descent``, ``starts``, ``batched_search``)
    C(x) = prior(x) - (2/4) sum_i log p_i(x) is minimised by Levenberg-Marquardt, where four
    segments count as one independent witness, from the best cells of a grid over focal lengths and
    headings. Descents of several photos run side by side as rows of arrays. Directions whose
    support (the log likelihood that they add) is below 11 are dropped.

Hypotheses (``hypotheses``, ``refine``)
    Lines may be edges of an upright world with right angles, of one without right angles, of one
    where only verticals are what they seem, or of nothing that is upright; then the network's
    answer stands. The log odds of each against the network alone grow with its support and with
    how well it agrees with the network, and fall with focal lengths that hardly any lens has. The
    answer is that of the most probable one; its covariance is the inverse of the curvature at the
    minimum, plus what a slightly wrong principal point would do, plus the spread of the others.

``vanishing`` asks lines alone, without a network: three vanishing points by random sampling.
"""
